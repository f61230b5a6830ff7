"""Records of loads that somebody has damaged, or that are another program's: other loads are shown all the same."""

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.operate.loads import Loads
from tests.load.lakes import BUCKET
from tests.operate.shop import FILES

DAMAGED = [
    # what the object holds, and what is said of it
    (b"", "is not a JSON object"),
    (b"[1]", "is not a JSON object"),
    (b'{"version": 1, "tables": 3}', "cannot be used by this release: "),
    (b'{"version": 7}', "cannot be used by this release"),
]


@pytest.mark.parametrize(("body", "said"), DAMAGED)
def test_a_damaged_record_hides_no_other_load(shop, body, said):
    shop = shop(FILES)
    shop.load("a", "b")
    control = shop.control
    report = control.read_report("a")
    s3 = shop.aws.client("s3")
    s3.put_object(Bucket=BUCKET, Key=control.keys.record("a", report.attempt), Body=body)
    records = {record.job_id: record for record in Loads(shop.pipeline.controls).read_last(5)}
    assert {job_id: record.status for job_id, record in records.items()} == {"a": "done", "b": "done"}
    # Its report stands in for it.
    assert [table.rows for table in records["a"].tables] == [2]
    (note,) = records["a"].notes
    assert said in note
    assert note.endswith("It is left out.")
    assert "pydantic" not in note
    assert records["b"].notes == ()
    printed = CliRunner().invoke(main, ["history", str(shop.lake.file)])
    assert (printed.exit_code, printed.stderr.replace("\n", "")) == (0, f"warning: {note}")
