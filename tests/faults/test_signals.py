"""Signals to a load of several tables: the first one withdraws what is staged, the second one ends it at once."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from datetime import datetime
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


MOMENTS, BEFORE_SPARK = 40, 10
"""The number of moments of one load that get a signal, and the least number of those before Spark answers."""
KINDS = [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGINT, signal.SIGTERM)]
ENDS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SAID = re.compile(r"SIG[A-Z]+: |stopped by SIG")


def play(books: Books, job: str, seconds: float, numbers: Sequence[int]) -> tuple[int, float, Process]:
    """Run a load, and send the signals to its group so many seconds after its start, the second one a second after
    the first. Return the exit code, and the seconds from the first signal to the end."""
    process = Process(books.lake.file, job, books.lake.aws.url)
    sent = 0.0
    with process:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            sent = time.monotonic()
            for number in numbers:
                if process.members():
                    to_group(process, number)
                try:
                    process.wait(1.0)
                except subprocess.TimeoutExpired:
                    continue
                break
            code = process.wait()
        ended = time.monotonic()
        while process.members() and time.monotonic() - ended < SECONDS:
            time.sleep(0.1)
        assert process.members() == []
    return code, ended - sent if sent else 0.0, process


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_forty_moments_of_one_load(books, capsys):
    """One line, the exit code, an end within 3 s of an idle machine before anything is bound, and every row once."""
    began = time.time()
    whole = Process(books.lake.file, "whole", books.lake.aws.url)
    with whole:
        assert whole.wait() == 0
    lasts = time.time() - began
    # Spark answers in the second half of the time until the first commit.
    commits = next(line for line in whole.errors.splitlines() if '"step": "committing"' in line)
    spark = (datetime.fromisoformat(json.loads(commits)["time"]).timestamp() - began) / 2
    early = [spark * (number + 0.5) / BEFORE_SPARK for number in range(BEFORE_SPARK)]
    later = MOMENTS - BEFORE_SPARK
    moments = [*early, *(spark + (lasts - spark) * (number + 0.5) / later for number in range(later))]
    shown, pace = [f"a load of {lasts:.1f} s"], 1.0
    for number, at in enumerate(moments):
        kinds, job = KINDS[number % len(KINDS)], f"m{number}"
        code, seconds, process = play(books, job, at * pace, kinds)
        # The first load may have met a busier machine: a signal that comes too late moves those after it forward.
        pace = pace if seconds else 0.8 * pace
        said = [line for line in process.errors.splitlines() if SAID.match(line)]
        names = "+".join(signal.Signals(kind).name for kind in kinds)
        shown.append(f"{number:2} {at * pace:5.1f} s {names:15} {code:4} {seconds:5.1f} s {' | '.join(said)[:120]}")
        assert "Traceback" not in process.errors, process.errors
        # Python ends itself by SIGINT if it came in code that a library's import makes and runs: 130 in a shell too.
        assert code in {0, *(ENDS[kind] for kind in kinds), -signal.SIGINT}, process.errors
        assert code == 0 or 1 <= len(said) <= len(kinds), process.errors
        assert books.lake.load(job).status == "done"
    books.audit(again=["whole", *(f"m{number}" for number in range(MOMENTS))])
    with capsys.disabled():
        print("\n" + "\n".join(shown))
