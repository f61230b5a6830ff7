"""Sending: to a server, a file and the log; what a target that fails costs, and what is said of it."""

import json
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakewriter.lineage.facts import Moment, Run
from lakewriter.lineage.sender import MOST_FAILURES, PAUSE_SECONDS, Sender, open_send
from lakewriter.spec.access import SecretText
from lakewriter.spec.lineage import Lineage
from tests.lineage.events import require_valid
from tests.lineage.targets import Target, closed_port

START = datetime(2027, 1, 3, 6, tzinfo=UTC)
KEY = SecretText("${env:LINEAGE_KEY}")
UNAFFECTED = "The load is not affected."


def moment(number: int = 0) -> Moment:
    return Moment("START", START, Run(START, f"shop/j{number}/a", "n", "shop", "LOAD"))


def settings(to: str, **more: Any) -> Lineage:
    return Lineage(to=to, endpoint="api/v1/lineage", namespace="n", timeout_seconds=1, **more)


def send(to: str, events: int = 1, **more: Any) -> tuple[str, ...]:
    """Send some events: what is said of it."""
    sender = Sender(settings(to, **more), open_send)
    for number in range(events):
        sender.put(moment(number))
    sender.drain()
    return sender.problems


@pytest.fixture(autouse=True, scope="module")
def _imported():
    """The client, which takes a second to import: no drain here waits for it."""
    import lakewriter.lineage.events  # noqa: F401


def test_events_arrive_in_order_with_the_key(monkeypatch):
    monkeypatch.setenv("LINEAGE_KEY", "hush")
    with Target() as target:
        assert send(target.url, 5, api_key=KEY) == ()
    assert target.requests == [("POST", "/api/v1/lineage", "Bearer hush")] * 5
    for event in target.events:
        require_valid(event)
    assert len({event["run"]["runId"] for event in target.events}) == 5


def test_url_with_a_path():
    with Target() as target:
        assert send(f"{target.url}/openapi/openlineage/") == ()
    assert target.requests == [("POST", "/openapi/openlineage/api/v1/lineage", None)]


FAILURES = [
    # status, what is said
    (500, "the server answered 500 Internal Server Error"),
    (401, "the server answered 401 Unauthorized"),
    (404, "the server answered 404 Not Found"),
    (302, "the server redirects to another URL, and no event is sent there"),
]


@pytest.mark.parametrize(("status", "said"), FAILURES)
def test_server_that_refuses(status, said):
    with Target(status, location="/elsewhere" if status == 302 else "") as target:
        assert send(target.url) == (
            f"lineage.to: 1 OpenLineage event was not sent to {target.url!r}: {said}. {UNAFFECTED}",
        )
    assert target.requests == [("POST", "/api/v1/lineage", None)]


def test_failures_in_a_row_end_the_attempts_for_a_while():
    now = [0.0]
    sent: list[Moment] = []

    def refuse(_: Lineage) -> Any:
        def send_one(moment: Moment) -> None:
            sent.append(moment)
            raise OSError(5, "no")

        return send_one

    sender = Sender(settings("http://x"), refuse, lambda: now[0])
    for number in range(10):
        sender.put(moment(number))
    while sender._waiting.unfinished_tasks:
        time.sleep(0.01)
    assert len(sent) == MOST_FAILURES
    assert sender.problems == (f"lineage.to: 10 OpenLineage events were not sent to 'http://x': no. {UNAFFECTED}",)
    now[0] = PAUSE_SECONDS
    sender.put(moment())
    while sender._waiting.unfinished_tasks:
        time.sleep(0.01)
    assert len(sent) == MOST_FAILURES + 1


def test_server_that_hangs_delays_no_longer_than_the_timeout():
    with Target(hangs=True) as target:
        sender = Sender(settings(target.url), open_send)
        began = time.monotonic()
        for number in range(1000):
            sender.put(moment(number))
        assert time.monotonic() - began < 0.5
        sender.drain()
        assert time.monotonic() - began < 1.9
    (problem,) = sender.problems
    assert problem.startswith(f"lineage.to: 1,000 OpenLineage events were not sent to {target.url!r}: ")


def test_nobody_listens():
    with closed_port() as url:
        assert send(url) == (
            f"lineage.to: 1 OpenLineage event was not sent to {url!r}: the server cannot be reached (Connection "
            f"refused). {UNAFFECTED}",
        )


def test_key_that_cannot_be_resolved(monkeypatch):
    monkeypatch.delenv("LINEAGE_KEY", raising=False)
    with Target() as target:
        (problem,) = send(target.url, api_key=KEY)
    assert "SECRET_UNRESOLVED: ${env:LINEAGE_KEY} cannot be resolved" in problem
    assert target.requests == []


def test_file_takes_a_line_for_each_event(tmp_path: Path):
    file = tmp_path / "events.jsonl"
    assert send(str(file), 2) == ()
    assert send(str(file), 1) == ()
    lines = file.read_text("utf-8").splitlines()
    assert len(lines) == 3
    for line in lines:
        require_valid(json.loads(line))


def test_file_in_no_folder(tmp_path: Path):
    path = str(tmp_path / "gone" / "events.jsonl")
    assert send(path, 2) == (
        f"lineage.to: 2 OpenLineage events were not sent to {path!r}: No such file or directory. {UNAFFECTED}",
    )


def test_log_goes_to_the_process_s_handlers(caplog):
    with caplog.at_level(logging.INFO):
        assert send("log") == ()
    (record,) = (record for record in caplog.records if record.name.startswith("openlineage"))
    require_valid(json.loads(record.getMessage()))


def test_client_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    def missing(_: Lineage) -> Any:
        raise ModuleNotFoundError("No module named 'openlineage'")

    sender = Sender(settings("log"), missing)
    sender.put(moment())
    sender.drain()
    assert sender.problems == (
        "lineage.to: 1 OpenLineage event was not sent to 'log': the package openlineage-python is not installed; "
        f"install it with pip install '.[lineage]' in a clone, or 'FILE.whl[lineage]' of a wheel. "
        f"{UNAFFECTED}",
    )
