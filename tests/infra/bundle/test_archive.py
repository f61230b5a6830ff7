"""Archives of the same files are the same bytes."""

import os
import zipfile
from pathlib import Path

import pytest

from infra.bundle.archive import compute_digest, list_files, write_archive

FILES = {"b/two.py": b"2\n", "a.py": b"1\n"}


def test_bytes_depend_on_names_and_contents_only(tmp_path: Path) -> None:
    later = tmp_path / "later.py"
    later.write_bytes(b"1\n")
    later.chmod(0o755)
    os.utime(later, (2_000_000_000, 2_000_000_000))
    write_archive(tmp_path / "one.zip", FILES, compress=True)
    write_archive(tmp_path / "two.zip", {"a.py": later, "b/two.py": b"2\n"}, compress=True)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_entries_are_sorted_dated_and_readable(tmp_path: Path) -> None:
    write_archive(tmp_path / "one.zip", FILES)
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        found = [(each.filename, each.date_time, oct(each.external_attr >> 16)) for each in archive.infolist()]
    assert found == [
        ("a.py", (1980, 1, 1, 0, 0, 0), "0o100644"),
        ("b/two.py", (1980, 1, 1, 0, 0, 0), "0o100644"),
    ]


@pytest.mark.parametrize(
    ("files", "same"),
    [
        ({"a.py": b"1\n", "b/two.py": b"2\n"}, True),
        ({"a.py": b"1\n", "b/two.py": b"3\n"}, False),
        ({"a.py": b"1\n", "b/too.py": b"2\n"}, False),
        ({"a.py": b"1\n"}, False),
    ],
)
def test_digest_follows_names_and_contents(files: dict[str, bytes], same: bool) -> None:
    assert (compute_digest(files) == compute_digest(FILES)) is same


def test_below_leaves_out_what_python_compiled(tmp_path: Path) -> None:
    for name in ("a.py", "__pycache__/a.cpython-311.pyc", "b/c.pyc", "b/d.properties"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert set(list_files(tmp_path)) == {"a.py", "b/d.properties"}
