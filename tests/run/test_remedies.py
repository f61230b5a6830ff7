"""What the message of a load that is not as expected tells to do: the load again, as this kind of load is made."""

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from lakewriter.errors import ExpectationFailedError
from lakewriter.expect.watching import NOTHING
from lakewriter.receipt import Totals
from lakewriter.records.state import TableState
from lakewriter.run.judging import StagedRows, judge_staged
from lakewriter.spec.expectations import RowCount
from lakewriter.spec.table_spec import Read
from tests.staging.plans import SPEC, TABLE

SIX = datetime(2027, 1, 1, 7, tzinfo=timezone(timedelta(hours=1)))
EXPECTED = TABLE.model_copy(update={"cursor": None, "expect": (RowCount(name="some rows", at_least=1),)})
GIVEN = EXPECTED.model_copy(update={"read": Read()})
REMEDIES = [
    # table, job id, the scheduled time, whether it is a batch, what is to be done
    (EXPECTED, "a", None, False, "run the load again: lakewriter run LAKE --job-id a; or load it as it is, with "
     "--accept 'some rows' --reason TEXT behind it"),
    (EXPECTED, "a", SIX, False, "lakewriter run LAKE --scheduled-at 2027-01-01T06:00:00Z; or"),
    (EXPECTED, "replay.1", None, False, f"run lakewriter replay LAKE {TABLE.id} again"),
    (EXPECTED, "a", None, True, "lakewriter run LAKE --continuous --accept 'some rows' --reason TEXT"),
    (GIVEN, "a", None, False, "lakewriter.write(..., job_id='a', accept={'some rows': 'why'})"),
    (GIVEN, "a", None, True, "the query then gives the batch again"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "job_id", "time", "is_batch", "said"), REMEDIES)
def test_remedy(table: Any, job_id: str, time: datetime | None, is_batch: bool, said: str) -> None:
    attempt: Any = SimpleNamespace(job_id=job_id, started=datetime(2027, 1, 1, tzinfo=UTC))
    last: Any = SimpleNamespace(read_rows=print)
    staged = StagedRows(table, attempt, TableState(), NOTHING, Totals(), {}, None, Totals(), 0, is_batch)
    with pytest.raises(ExpectationFailedError) as failure:
        judge_staged(staged, SPEC.model_copy(update={"scheduled_at": time}), last)
    assert said in failure.value.remedy
