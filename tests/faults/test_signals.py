"""Signals to a load of several tables: the first one withdraws what is staged, the second one ends it at once."""

import json
import os
import signal
import time
from typing import Any

import pytest

from tests.faults.books import TABLES, Books
from tests.faults.process import Process
from tests.load.lakes import BUCKET, completes, uploads_part
from tests.support import sessions

pytestmark = pytest.mark.spark

SECONDS = 30
"""Within which a load ends after the first signal, on a machine that does other things too."""


@pytest.fixture
def books(lake):
    return Books(lake)


def to_driver(process: Process, number: int) -> None:
    os.kill(process.pid, number)


def to_group(process: Process, number: int) -> None:
    """As a terminal does, and whoever stops a service: Java belongs to the group."""
    os.killpg(process.pid, number)


def signalled(process: Process, send, number: int) -> None:
    """Send it, and go on when the process has had the time to notice."""
    send(process, number)
    time.sleep(1.5)


def outcomes(books: Books, job: str) -> list[dict[str, Any]]:
    found = books.lake.aws.objects(BUCKET)
    return [
        json.loads(body) for key, body in found.items() if f"/loads/{job}/" in key and key.endswith("/outcome.json")
    ]


STOPS = [
    (to_group, signal.SIGINT, 130),
    (to_group, signal.SIGTERM, 143),
    (to_group, signal.SIGHUP, 129),
    (to_driver, signal.SIGTERM, 143),
    (to_driver, signal.SIGINT, 130),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("send", "number", "code"), STOPS)
def test_a_signal_while_tables_are_staged(books, send, number, code):
    process = Process(books.lake.file, "a", books.lake.aws.url)
    process.gate.at(uploads_part, lambda: signalled(process, send, number))
    with process:
        assert process.wait() == code, process.errors
        ended = time.monotonic()
        while process.members() and time.monotonic() - ended < SECONDS:
            time.sleep(0.1)
        assert process.members() == []
    name = signal.Signals(number).name
    assert f"{name}: load a stops" in process.errors
    assert f"load a stopped by {name}: nothing of " in process.errors
    assert f"Continue with: lakewriter run {books.lake.file} --job-id a" in process.errors
    report = process.report
    assert (report["status"], report["stopped"]) == ("failed", name)
    unfinished = {result["table"] for result in report["tables"] if result["status"] == "not_run"}
    assert unfinished
    assert books.lake.aws.uploads(BUCKET) == []
    for table in unfinished:
        state = books.controls[table].state.read()
        assert (state.pending, dict(state.running), state.committed) == (None, {}, 0)
    (outcome,) = outcomes(books, "a")
    assert (outcome["status"], outcome["exit_code"], outcome["transient"]) == ("failed", code, True)
    assert books.lake.load("a").status == "done"
    books.audit(again=["a"])


@pytest.mark.exhaustive
def test_a_signal_while_a_table_is_committed_finishes_that_one(books):
    process = Process(books.lake.file, "a", books.lake.aws.url)
    process.gate.at(completes, lambda: signalled(process, to_driver, signal.SIGINT))
    with process:
        code = process.wait()
    statuses = {result["table"]: result["status"] for result in process.report["tables"]}
    assert "done" in statuses.values()
    assert set(statuses.values()) <= {"done", "not_run"}
    assert code == (130 if "not_run" in statuses.values() else 0)
    assert all(books.controls[table].state.read().pending is None for table in TABLES)
    assert books.lake.aws.uploads(BUCKET) == []
    assert books.lake.load("a").status == "done"
    books.audit(again=["a"])


@pytest.mark.exhaustive
def test_a_second_signal_ends_a_load_at_once(books):
    def twice() -> None:
        signalled(process, to_group, signal.SIGINT)
        to_group(process, signal.SIGTERM)
        sent.append(time.monotonic())
        time.sleep(5)

    sent: list[float] = []
    process = Process(books.lake.file, "a", books.lake.aws.url)
    # Nothing comes through while the call is held, so the first signal ends nothing.
    process.gate.at(uploads_part, twice)
    with process:
        assert process.wait() == 143, process.errors
        assert time.monotonic() - sent[0] < 3
        assert "SIGTERM: ended at once. Continue with: lakewriter run" in process.errors
        while sessions.members(process.pid) and time.monotonic() - sent[0] < SECONDS:
            time.sleep(0.1)
        assert sessions.members(process.pid) == []
    assert books.lake.load("a").status == "done"
    books.audit(again=["a"])
