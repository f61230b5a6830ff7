"""What is inside a file that was opened, and which files of a folder are left out or odd: refused by name, or told."""

import bz2
import gzip
import io
import tarfile
from typing import Any

import pytest

from lakewriter.errors import SourceFailedError
from lakewriter.source.files.file_source import open_files
from lakewriter.spec.table_spec import Read
from tests.source.files.reading import in_turn
from tests.source.tables import table

CSV = b"id,name\n1,a\n2,b\n"


def pack(kind: Any = tarfile.USTAR_FORMAT) -> bytes:
    """An archive of one file."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
        entry = tarfile.TarInfo("a.csv")
        entry.size = len(CSV)
        archive.addfile(entry, io.BytesIO(CSV))
    return file.getvalue()


def look(folder, form="csv"):
    options = {"header": "true"} if form == "csv" else {}
    read = Read(format=form, path=str(folder), options=options)
    return open_files(table(), read, options, in_turn, aside=False)


REFUSED = [
    # the file's name, its content, its format, what the message says
    ("a.tar.gz", gzip.compress(pack()), "csv", "a.tar.gz' is a tar archive, inside gzip, expected text"),
    ("a.tgz", gzip.compress(pack(tarfile.GNU_FORMAT)), "csv", "is a tar archive, inside gzip"),
    ("a.tar", pack(tarfile.PAX_FORMAT), "csv", "is a tar archive, expected text"),
    ("a.tar.bz2", bz2.compress(pack()), "json", "is a tar archive, inside bzip2"),
    ("a.csv.gz.gz", gzip.compress(gzip.compress(CSV)), "csv", "is compressed twice"),
    ("a.csv.gz", gzip.compress(b"PAR1" + b"\xff" * 20), "csv", "is a Parquet file, inside gzip"),
    ("a.csv", b"id,name\n" + b"\0" * 10_000, "csv", "has 64 NUL bytes in a row"),
    ("a.json", b"\0" * 10_000, "json", "has 64 NUL bytes in a row"),
    ("a.txt", gzip.compress(pack()), "text", "is a tar archive, inside gzip"),
    ("a.csv", b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", "csv", "is an HTML page, expected CSV"),
    ("a.csv", b"\n <html lang=en>\n", "csv", "is an HTML page, expected CSV"),
    ("a.csv", b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code></Error>', "csv", "is an XML document"),
]


# The time is in what gzip writes: ids of the bytes would differ between processes that collect the tests.
@pytest.mark.parametrize(("name", "content", "form", "message"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_is_inside_is_looked_at(tmp_path, name, content, form, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceFailedError, match=r"table 's\.t'") as caught:
        look(tmp_path, form)
    assert message in caught.value.message
    assert caught.value.remedy


def test_a_page_read_as_text_is_text(tmp_path):
    (tmp_path / "a.html").write_bytes(b"<html>\n</html>\n")
    assert look(tmp_path, "text").notes == ()


NOTES: list[Any] = [
    # files by name, the format, the notes
    ({"a.csv": CSV, "b.csv": b""}, "csv", ["1 of 2 files without rows: b.csv"]),
    ({"a.csv": CSV, "b.csv": b"\n\n"}, "csv", ["1 of 2 files without rows: b.csv"]),
    ({"a.json": b'{"a":1}', "b.json": b""}, "json", ["1 of 2 files without rows: b.json"]),
    ({"a.txt": b"x\n", "b.txt": b"", "c.txt": b""}, "text", ["2 of 3 files without rows: b.txt, c.txt"]),
    (
        {"a.csv": CSV, "b.csv._COPYING_": CSV},
        "csv",
        ["FOLDER has files that are still being copied, which are not read: b.csv._COPYING_"],
    ),
    (
        {"a.csv": CSV, "b.tmp": CSV, "c.csv~": CSV},
        "csv",
        [
            "FOLDER has files that are read as data, and by their names may be none: b.tmp, c.csv~; pathGlobFilter "
            "leaves them out"
        ],
    ),
    ({"a.csv": CSV, "_SUCCESS": b"", ".a.csv.crc": b"x"}, "csv", []),
]


@pytest.mark.parametrize(("files", "form", "notes"), NOTES)
def test_what_is_left_out_or_odd_is_told(tmp_path, files, form, notes):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert list(look(tmp_path, form).notes) == [note.replace("FOLDER", repr(str(tmp_path))) for note in notes]
