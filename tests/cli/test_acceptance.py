"""``airbyte write`` as a platform calls it, in every form of the formats: what it is sent, says, and leaves there.

The command is the real one; but for one process of its own it is called in this one, to share its Spark session.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.connection import Connection, Message, configure, record, records, refresh, send_scenarios, state, status
from tests.cli.platform import Platform
from tests.cli.scenarios import FORMS, SCENARIOS, TYPED, Scenario
from tests.support.narrow import need

pytestmark = pytest.mark.spark


UNKNOWN = {"id": {"type": "bigserial"}}


@pytest.fixture(params=FORMS)
def connection(request, tmp_path, aws, bucket, spark, capfd):
    return Connection(Platform(tmp_path, aws, spark), spark, request.param, capfd)


def list_states(said: Iterable[Message]) -> list[tuple[str, int]]:
    """The states handed back: stream and cursor."""
    streams = [message["state"]["stream"] for message in said if message["type"] == "STATE"]
    return sorted((own["stream_descriptor"]["name"], own["stream_state"]["cursor"]) for own in streams)


def list_errors(said: Iterable[Message]) -> list[str]:
    traces = (message["trace"] for message in said if message["type"] == "TRACE")
    return [trace["error"]["failure_type"] for trace in traces]


def as_csv(value: Any) -> str:
    """A value of a flattened record as RFC 4180 text, read back."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.one_in(6)
def test_records_of_every_kind(connection):
    # Text takes the values of a type that nobody knows as they are.
    scenarios = [*SCENARIOS, *([] if connection.form in TYPED else [Scenario("odd", UNKNOWN, [{"id": 1}], [])])]
    code, said = connection.write(*send_scenarios(scenarios))
    assert (code, list_errors(said)) == (0, [])
    for each in scenarios:
        check_rows(connection, each)


def check_rows(connection: Connection, scenario: Scenario) -> None:
    rows = connection.read(scenario.find_folder())
    expected = scenario.list_rows(connection.form)
    if connection.form == "csv-flat":
        expected = [{name: as_csv(value) for name, value in row.items()} for row in expected]
    assert [connection.read_data(row) for row in rows] == expected, scenario.name
    for row, changes in zip(rows, scenario.changes or [()] * len(rows), strict=True):
        meta: Any = row["_airbyte_meta"]
        own = json.loads(meta) if isinstance(meta, str) else meta
        found = tuple((change["field"], change["reason"]) for change in own["changes"])
        assert (own["sync_id"], found) == (1, changes if connection.form in TYPED else ()), scenario.name
        assert int(row["_airbyte_generation_id"]) == 1
    assert len({row["_airbyte_raw_id"] for row in rows}) == len(rows)


@pytest.mark.one_in(2)
def test_syncs_one_after_the_other(connection):
    """Appended and refreshed streams, a sync that is interrupted, and the one that goes on from it."""
    first = [*records("added", 1, 2), *records("renewed", 1, 2), state("added", 2),
             status("added", "COMPLETE"), status("renewed", "COMPLETE")]  # fmt: skip
    code, said = connection.write([configure("added"), refresh("renewed", 1, 1)], first)
    assert (code, list_states(said)) == (0, [("added", 2)])
    assert (connection.ids("added"), connection.ids("renewed")) == ([1, 2], [1, 2])

    # The source dies: what its STATEs cover stays, nothing that was there goes.
    second = [*records("added", 3), state("added", 3), *records("added", 4), *records("renewed", 3),
              state("renewed", 3), *records("renewed", 4), status("renewed", "INCOMPLETE")]  # fmt: skip
    code, said = connection.write([configure("added", sync_id=2), refresh("renewed", 2, 2)], second)
    assert (code, list_states(said), list_errors(said)) == (1, [("added", 3), ("renewed", 3)], ["system_error"])
    assert (connection.ids("added"), connection.ids("renewed")) == ([1, 2, 3], [1, 2, 3])

    # The next attempt has the same generation: what the one before committed of it stays, what is older goes.
    third = [*records("added", 4, 5), *records("renewed", 4), state("added", 5),
             status("added", "COMPLETE"), status("renewed", "COMPLETE")]  # fmt: skip
    code, said = connection.write([configure("added", sync_id=3), refresh("renewed", 2, 3)], third)
    assert (code, list_states(said)) == (0, [("added", 5)])
    assert (connection.ids("added"), connection.ids("renewed")) == ([1, 2, 3, 4, 5], [3, 4])
    rows = connection.read("data/public/renewed/")
    assert {int(row["_airbyte_generation_id"]) for row in rows} == {2}
    assert set(connection.platform.generations().values()) == {"1", "2"}


@pytest.mark.parametrize("connection", ["jsonl"], indirect=True)
def test_a_refresh_without_rows_leaves_none(connection):
    connection.write([refresh("renewed", 1, 1)], [*records("renewed", 1), status("renewed", "COMPLETE")])
    code, _ = connection.write([refresh("renewed", 2, 2)], [status("renewed", "COMPLETE")])
    assert (code, connection.platform.data()) == (0, {})


@pytest.mark.parametrize("connection", TYPED, indirect=True)
def test_unknown_type(connection):
    """The schema has to be known for Avro and Parquet: nothing is written, of no stream."""
    streams = [configure("good"), configure("odd", UNKNOWN)]
    messages = [*records("good", 1), *records("odd", 1), status("good", "COMPLETE"), status("odd", "COMPLETE")]
    code, said = connection.write(streams, messages)
    assert (code, list_errors(said), connection.platform.data()) == (1, ["system_error"], {})


@pytest.mark.exhaustive
def test_a_process_that_is_killed(tmp_path, aws, bucket, spark, capfd):
    """What it has handed a STATE back for stays, what it has not comes again; nothing lies there twice."""
    connection = Connection(Platform(tmp_path, aws, spark), spark, "jsonl-flat", capfd)
    config, catalog = connection.platform.given(configure("added"), format=FORMS["jsonl-flat"])
    files = ["--config", str(config), "--catalog", str(catalog), "--step-mb", "1"]
    wide = {"id": {"type": "integer"}, "text": {"type": "string"}}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-m", "lakewriter", "airbyte", "write", *files],
        stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2],
    ) as process:  # fmt: skip
        first = [record("added", {"id": each, "text": "x" * 2000}) for each in range(1000)]
        send = need(process.stdin)
        send.write("".join(json.dumps(each) + "\n" for each in [*first, state("added", 999)]).encode())
        send.flush()
        said = [json.loads(need(process.stdout).readline())]
        while said[-1]["type"] != "STATE":
            said.append(json.loads(need(process.stdout).readline()))
        send.write("".join(json.dumps(each) + "\n" for each in records("added", *range(1000, 1100))).encode())
        send.flush()
        process.kill()
    assert list_states(said) == [("added", 999)]
    rest = [*records("added", *range(1000, 1200)), status("added", "COMPLETE")]
    code, _ = connection.write([configure("added", wide)], rest)
    assert (code, connection.ids("added")) == (0, list(range(1200)))
