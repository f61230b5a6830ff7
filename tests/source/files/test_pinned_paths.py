"""Files that a listing has named: pinned, with the keys of their folders, and told where they have changed or gone."""

import os
from pathlib import Path

import pytest

from lakewriter.errors import SourceFailedError
from lakewriter.source.files.folder_listing import PlannedFile, pin_paths

AT = 1_700_000_000_123


def write(path: Path, text: str = "x") -> PlannedFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    os.utime(path, ns=(AT * 1_000_000, AT * 1_000_000))
    return PlannedFile(str(path), AT)


FOLDERS = [
    # the root below the test's folder, the file, options, keys and values
    ("in", "in/a.csv", {}, ()),
    ("in/", "in/day=01/x=a%2Fb/a.csv", {}, (("day", "01"), ("x", "a/b"))),
    ("in", "in/day=__HIVE_DEFAULT_PARTITION__/a.csv", {}, (("day", None),)),
    ("in", "in/day=01/a.csv", {"recursivefilelookup": "true"}, ()),
    ("in/*", "in/b/day=01/a.csv", {}, (("day", "01"),)),
    ("in/day=*/*.csv", "in/day=01/a.csv", {}, ()),
    ("{in,out}/b", "out/b/k=1/a.csv", {}, (("k", "1"),)),
    ("in/a.csv", "in/a.csv", {}, ()),
]


@pytest.mark.parametrize(("root", "name", "options", "folders"), FOLDERS)
def test_folders_between_root_and_file(tmp_path, root, name, options, folders):
    planned = write(tmp_path / name)
    listing = pin_paths([planned], f"{tmp_path}/{root}", options, "t")
    [file] = listing.files
    assert (file.path, file.size, file.version, file.folders) == (planned.path, 1, f"{AT}000000", folders)
    assert listing.notes == []


def test_file_that_has_changed_is_noted(tmp_path):
    planned = [write(tmp_path / "a.csv"), write(tmp_path / "b.csv")]
    (tmp_path / "b.csv").write_text("xy", "utf-8")
    listing = pin_paths(planned, str(tmp_path), {}, "t")
    assert listing.notes == [
        f"1 file changed between Spark's listing and the batch, such as '{tmp_path}/b.csv': read as of now, and never "
        "again"
    ]


def test_file_that_has_gone_is_named(tmp_path):
    planned = write(tmp_path / "a.csv")
    (tmp_path / "a.csv").unlink()
    with pytest.raises(SourceFailedError, match=r"/a\.csv' is no longer there: it arrived, and went before"):
        pin_paths([planned], str(tmp_path), {}, "t")


def test_objects_are_pinned_by_their_etags(aws, bucket):
    key = "in/day=01/a b.csv"
    put = aws.client("s3").put_object(Bucket=bucket, Key=key, Body=b"id\n1\n")
    aws.client("s3").put_object(Bucket=bucket, Key=f"{key}.gz", Body=b"")
    listing = pin_paths([PlannedFile(f"s3a://{bucket}/{key}", 0)], f"s3://{bucket}/in", {}, "t")
    [file] = listing.files
    assert (file.path, file.size, file.version) == (f"{bucket}/{key}", 5, put["ETag"].strip('"'))
    assert (file.folders, len(listing.notes)) == ((("day", "01"),), 1)
    with pytest.raises(SourceFailedError, match="is no longer there"):
        pin_paths([PlannedFile(f"s3://{bucket}/in/day=01/a", 0)], f"s3://{bucket}/in", {}, "t")
