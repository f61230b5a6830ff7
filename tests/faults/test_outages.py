"""Outages of 60 to 150 s, in which no call to any service is answered, from some step of a load on."""

import itertools
import time
from collections.abc import Callable

import pytest

from tests.faults.books import EVENTS, Books
from tests.faults.formats import pipeline
from tests.faults.gate import Fault
from tests.load.lakes import Lake, completes, uploads_part, writes
from tests.support.call import Call
from tests.support.local_tasks import local_session

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(1800)]

STEPS = {
    "registering": (writes("/state.json"), 0),
    "staging": (uploads_part, 0),
    "binding": (writes("/state.json"), 1),
    "completing": (completes, 0),
    "reporting": (writes(".report.json"), 0),
}
KINDS = ("CSV", "JSONL", "Avro", "Parquet", "Iceberg", "Glue")
ENDS = (Fault.RESET, Fault.SLOW_DOWN, Fault.ERROR)
CASES = [
    pytest.param(kind, *STEPS[step], seconds, fault, id=f"{kind}, {step}, {seconds} s of {fault}")
    for (kind, step), seconds, fault in zip(
        itertools.product(KINDS, STEPS), itertools.cycle((60, 105, 150)), itertools.cycle(ENDS * 2 + ENDS[:1])
    )
]


class Outage:
    """Every call meets the fault, from the matching one after ``after`` others on, for so long."""

    def __init__(self, match: Callable[[Call], bool], after: int, seconds: float, fault: Fault) -> None:
        self._match, self._after, self._seconds, self._fault = match, after, seconds, fault
        self.began: float | None = None

    def __call__(self, call: Call) -> Fault | None:
        """The weather of a call."""
        if self.began is None and self._match(call):
            self._after -= 1
            if self._after < 0:
                self.began = time.monotonic()
        is_over = self.began is None or time.monotonic() > self.began + self._seconds
        return None if is_over else self._fault


@pytest.mark.parametrize(("kind", "match", "after", "seconds", "fault"), CASES)
def test_outage(tmp_path, aws, bucket, record_property, kind, match, after, seconds, fault):
    books = pipeline(tmp_path, aws, local_session(2), kind)
    _rides_out(books, Outage(match, after, seconds, fault), record_property)


@pytest.mark.parametrize(("step", "seconds"), [("staging", 60), ("binding", 105), ("completing", 150)])
def test_outage_with_spark(tmp_path, aws, bucket, spark, record_property, step, seconds):
    books = Books(Lake(tmp_path, aws, spark), EVENTS)
    _rides_out(books, Outage(*STEPS[step], seconds, Fault.RESET), record_property)


def _rides_out(books, outage, record_property):
    """It ends well, or with the code that says retry, and then the same job id does."""
    process = books.process("a")
    process.gate.weather = outage
    with process:
        code = process.wait(900)
    assert outage.began is not None
    assert code in (0, 75), process.errors
    books.glance()
    assert books.lake.load("a").status == "done"
    assert books.audit(again=["a"]).left_uploads.total() == 0
    record_property("outages", 1)
    record_property("rode out" if code == 0 else "ended with 75", 1)
