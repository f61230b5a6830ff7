"""``airbyte write`` of a stream whose records have files."""

import pytest

from tests.cli.connection import Connection, configure, record, state, status
from tests.cli.platform import Platform

pytestmark = pytest.mark.spark


def test_files_are_copied_before_their_state_comes_back(tmp_path, aws, spark, bucket, capfd):
    """The source's files are gone then: its disk is for those to come."""
    connection = Connection(Platform(tmp_path, aws, spark), spark, "jsonl-flat", capfd)
    messages, files = [], []
    for number in range(20):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(b"%d" % number)
        files.append(path)
        size = len(str(number))
        reference = {"staging_file_url": str(path), "source_file_relative_path": f"in/{number}.bin"}
        one = record("files", {"id": number})
        one["record"]["file_reference"] = reference | {"file_size_bytes": size}
        messages.append(one)
    code, heard = connection.write(
        [configure("files", include_files=True)], [*messages, state("files", 20), status("files", "COMPLETE")]
    )
    assert (code, [each["type"] for each in heard if each["type"] == "STATE"]) == (0, ["STATE"])
    copies = {key: body for key, body in connection.platform.data().items() if key.endswith(".bin")}
    assert sorted(copies.values(), key=int) == [b"%d" % number for number in range(20)]
    rows = [row for key in connection.platform.data() if ".jsonl" in key for row in connection.read(key)]
    assert {row["_airbyte_file_path"]: row["id"] for row in rows} == {key: int(body) for key, body in copies.items()}
    assert not any(path.exists() for path in files)
