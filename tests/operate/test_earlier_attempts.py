"""A load that is tried again keeps how each attempt ended: history, show and the page have all of them."""

import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.operate.load_ending import find_own_seconds
from lakewriter.operate.loads import Loads
from lakewriter.pages.load_page import SPARK_STARTS, render_load
from lakewriter.pages.load_record import LoadRecord
from lakewriter.report import TableResult
from tests.load.lakes import BUCKET
from tests.operate.shop import FILES

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def put_attempts(shop, count, *, records=True):
    """Write what ``count`` failed attempts and a last one that is done leave of load ``a``."""
    keys, s3 = shop.control.keys, shop.aws.client("s3")
    report = shop.control.read_report("a")
    for number in range(count):
        attempt, finished = f"{number:012x}", NOON + timedelta(minutes=number)
        end = {"status": "failed", "code": "SOURCE_FAILED", "message": f"no file, {number}", "finished": finished}
        record = LoadRecord(pipeline="p", job_id="a", attempt=attempt, seconds=2.5, **end)
        body = json.dumps(end, default=lambda moment: moment.isoformat())
        s3.put_object(Bucket=BUCKET, Key=keys.outcome("a", attempt), Body=body.encode())
        if records:
            s3.put_object(Bucket=BUCKET, Key=keys.record("a", attempt), Body=record.model_dump_json().encode())
    return report.attempt


@pytest.mark.parametrize(("records", "seconds"), [(True, 2.5), (False, None)])
def test_each_attempt_stays(shop, records, seconds):
    shop = shop(FILES)
    shop.load("a")
    last = put_attempts(shop, 2, records=records)
    put_last(shop, last, records=records)
    record = Loads(shop.pipeline.controls).read_one("a")
    assert (record.attempt, record.status) == (last, "done")
    assert [(end.attempt, end.status, end.code, end.message, end.finished, end.seconds) for end in record.earlier] == [
        ("000000000000", "failed", "SOURCE_FAILED", "no file, 0", NOON, seconds),
        ("000000000001", "failed", "SOURCE_FAILED", "no file, 1", NOON + timedelta(minutes=1), seconds),
    ]
    page = render_load(record, [])
    assert "Earlier attempts" in page
    assert "no file, 1" in page


def put_last(shop, attempt, *, records):
    """Write how the attempt ended that is done, a second after the others: S3 keeps times to the second."""
    time.sleep(1.1)
    end = {"status": "done", "finished": NOON + timedelta(hours=1)}
    keys, s3 = shop.control.keys, shop.aws.client("s3")
    record = LoadRecord(pipeline="p", job_id="a", attempt=attempt, **end)
    body = json.dumps(end, default=lambda moment: moment.isoformat())
    s3.put_object(Bucket=BUCKET, Key=keys.outcome("a", attempt), Body=body.encode())
    if records:
        s3.put_object(Bucket=BUCKET, Key=keys.record("a", attempt), Body=record.model_dump_json().encode())


@pytest.mark.parametrize("body", [b"", b"[1]", b'{"finished": "soon"}', b'{"code": 3}'])
def test_a_damaged_outcome_of_an_earlier_attempt_is_left_out(shop, body):
    shop = shop(FILES)
    shop.load("a")
    last = put_attempts(shop, 2, records=False)
    key = shop.control.keys.outcome("a", "000000000000")
    shop.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
    put_last(shop, last, records=False)
    record = Loads(shop.pipeline.controls).read_one("a")
    assert [end.message for end in record.earlier] == ["no file, 1"]
    assert record.notes[-1].endswith("It is left out.")


DAMAGED = [
    b"", b"[1]", b"null", b'"done"', b'{"status": "finished"}', b'{"status": null}', b'{"finished": "soon"}',
    b'{"code": 3}', b'{"message": ["a"]}', b"\xff",
]  # fmt: skip


@pytest.mark.one_in(5)
@pytest.mark.parametrize("body", DAMAGED)
@pytest.mark.parametrize("is_done", [True, False])
def test_a_damaged_outcome_of_the_last_attempt_ends_no_history(shop, body, is_done):
    """What the reports say stands in for it; other loads are listed."""
    shop = shop(FILES)
    shop.load("other", "a")
    for key in shop.aws.objects(BUCKET):
        is_lost = key.endswith("record.json") or (not is_done and key.endswith(("report.json", "outcome.json")))
        if "/loads/a/" in key and is_lost:
            shop.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    attempt = "ffffffffffff" if not is_done else shop.control.read_report("a").attempt
    shop.aws.client("s3").put_object(Bucket=BUCKET, Key=shop.control.keys.outcome("a", attempt), Body=body)
    loads = Loads(shop.pipeline.controls)
    record = loads.read_one("a")
    assert (record.status, len(record.tables)) == (("done", 1) if is_done else ("unfinished", 0))
    assert record.notes[-1].endswith("It is left out.")
    answer = CliRunner().invoke(main, ["history", str(shop.lake.file)])
    assert (answer.exit_code, "other" in answer.stdout) == (0, True), answer.output


def test_a_load_of_one_attempt_has_no_earlier_ones(shop):
    shop = shop(FILES)
    shop.load("a")
    assert Loads(shop.pipeline.controls).read_one("a").earlier == ()


SECONDS = [({}, 5.0), ({"s.t": {SPARK_STARTS: 3.0}}, 2.0), ({"s.t": {SPARK_STARTS: 9.0}}, 0.0)]


@pytest.mark.parametrize(("phases", "expected"), SECONDS)
def test_run_and_show_give_a_table_the_same_time(phases, expected):
    """Spark's start is nobody's: ``run`` shows it once, and a record has it among the phases."""
    result = TableResult(schema_name="s", table="t", status="done", seconds=5.0)
    assert find_own_seconds(result, phases) == expected
