"""Attempts that stand still while another of their job takes over and finishes, and then go on."""

from typing import Any

import pytest

from tests.faults.books import EVENTS, SCHEMA, Books
from tests.faults.process import Process
from tests.load.lakes import BUCKET, calls, completes, uploads_part, writes

pytestmark = pytest.mark.spark

STALLS = {
    # where the first attempt stops: the matching call, how many pass before, whether it is applied or comes late
    "staging, all uploaded": (uploads_part, 1, True),
    "a part comes late": (uploads_part, 1, False),
    "the intent comes late": (writes(f"{EVENTS}.json"), 0, False),
    "the binding comes late": (writes("/state.json"), 1, False),
    "bound": (writes("/state.json"), 1, True),
    "a completion comes late": (completes, 0, False),
    "a file completed": (completes, 0, True),
    "all completed, the state comes late": (writes("/state.json"), 2, False),
    "the table comes late": (calls("glue:CreateTable"), 0, False),
    "the partition comes late": (calls("glue:BatchCreatePartition"), 0, False),
    "the report comes late": (writes(".report.json"), 0, False),
    "the closing comes late": (writes("/state.json"), 3, False),
}
CASES = [pytest.param(*values, id=stall) for stall, values in STALLS.items()]
UNBOUND = [pytest.param(*STALLS[stall], id=stall) for stall in list(STALLS)[:4]]


def everything(books: Books) -> dict[str, Any]:
    """What a load changes for others: objects but for the attempts' own records, uploads, the catalog."""
    aws = books.lake.aws
    glue = aws.client("glue").get_table(DatabaseName=SCHEMA, Name=EVENTS)["Table"]
    objects = {key: body for key, body in aws.objects(BUCKET).items() if "/loads/" not in key}
    return {"objects": objects, "uploads": aws.uploads(BUCKET), "version": glue.get("VersionId")}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("match", "after", "applied"), CASES)
def test_stalled_while_another_attempt_finishes(events, match, after, applied):
    with Process(events.lake.file, "a", events.lake.aws.url).stalled_at(match, after=after, applied=applied) as first:
        first.wait_for_stall()
        assert events.lake.load("a").status == "done"
        found = everything(events)
        first.go_on()
        assert first.wait() in (0, 75), first.errors
    assert everything(events) == found
    assert events.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("match", "after", "applied"), UNBOUND)
def test_stalled_while_another_attempt_has_staged(events, match, after, applied):
    url = events.lake.aws.url
    with Process(events.lake.file, "a", url).stalled_at(match, after=after, applied=applied) as first:
        first.wait_for_stall()
        with Process(events.lake.file, "a", url).stalled_at(uploads_part, after=1, applied=True) as second:
            second.wait_for_stall()
            staged = events.lake.aws.uploads(BUCKET)
            first.go_on()
            assert first.wait() == 75, first.errors
            assert "CONCURRENT_LOAD: " in first.errors or "STAGED_LOST: " in first.errors
            assert set(staged) <= set(events.lake.aws.uploads(BUCKET))
            second.go_on()
            assert second.wait() == 0, second.errors
    assert events.audit(again=["a"]).left_uploads == {}
