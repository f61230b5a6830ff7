"""A fault of the program on one table or in one check: told there as INTERNAL, with its trace in the log."""

import json
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli import status_view
from lakewriter.cli.main import main
from lakewriter.commit.control import Control
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.doctor.probe import Finding, Probe, run_probes
from lakewriter.errors import (
    CODES,
    InternalError,
    LakeError,
    NoAnswerError,
    PendingUnrecoverableError,
    SchemaIncompatibleError,
)
from lakewriter.operate import planning
from lakewriter.operate.health import assess
from lakewriter.operate.verification import Verifier
from lakewriter.records.state import TableState
from lakewriter.run import checks
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import EVERYTHING
from tests.dialects.files import READ, lake

FAULT = "table {}: KeyError: 'gone'. This is a fault of Lakewriter itself: report it with the trace in the log."


class Broken:
    """The control objects of one table, or what is raised in their place."""

    def __init__(self, fault: Exception | None) -> None:
        self.fault, self.table_id, self.abilities = fault, "t", EVERYTHING

    @property
    def state(self) -> "Broken":
        return self

    def read(self) -> TableState:
        if self.fault is not None:
            raise self.fault
        return TableState()

    def read_json(self, _: str) -> None:
        return None

    @property
    def keys(self) -> Any:
        return self

    def list_entries(self, _: str) -> tuple[()]:
        return ()

    def list_reports(self) -> dict[str, Any]:
        return {}

    @property
    def history(self) -> "Broken":
        return self

    @property
    def store(self) -> "Broken":
        return self

    continuous, root, layout = "continuous.json", "lake/_lakewriter/p", None


def controls(**faults: Exception | None) -> dict[str, Control]:
    return {name: cast(Control, Broken(fault)) for name, fault in faults.items()}


def test_plan(tmp_path, monkeypatch, caplog):
    tables = [{"table": name, "schema": "s", "read": READ} for name in ("a", "b", "c")]
    spec = load_spec(lake(tmp_path, tables=tables))
    monkeypatch.setattr(checks, "require_no_writer", lambda *_: (_ for _ in ()).throw(SchemaIncompatibleError("no.")))
    broken = {table.id: fault for table, fault in zip(spec.tables, (KeyError("gone"), None, None), strict=True)}
    tables_planned = planning.plan(
        spec, job_id="j", clients=Clients(spec.access), spark=cast(Any, None), controls=controls(**broken)
    )
    name = spec.tables[0].id
    assert [table.error for table in tables_planned] == [f"INTERNAL: {FAULT.format(name)}"] + [
        "SCHEMA_INCOMPATIBLE: no."
    ] * 2
    assert f"The plan of table {name} met a fault of the program." in caplog.text
    assert [record.exc_info is not None for record in caplog.records if "fault of the program" in record.message] == [
        True
    ]


def test_check(caplog):
    def ask() -> Any:
        yield Finding("first", "ok", "fine")
        raise KeyError("gone")

    fine = Finding("third", "ok", "fine")
    probes = [Probe("first", ask), Probe("second", list, needs=("first",)), Probe("third", lambda: [fine])]
    found = list(run_probes(probes))
    assert [(each.probe, each.status, each.code) for each in found] == [
        ("first", "ok", None), ("first", "failed", "INTERNAL"), ("second", "skipped", None), ("third", "ok", None)
    ]  # fmt: skip
    assert found[1].message == "check 'first': KeyError: 'gone'."
    assert "The check 'first' met a fault of the program." in caplog.text


def test_verify(monkeypatch, caplog):
    """Alone too it is told among the differences, since other loads of verify --all may not meet it."""
    verifier = Verifier(controls(a=None), Clients(Access(bucket="b", region="us-east-1")))
    monkeypatch.setattr(Verifier, "_compare_load", lambda *_: (_ for _ in ()).throw(KeyError("gone")))
    found = verifier.verify("j")
    (difference,) = found.differences
    assert (difference.table, difference.kind, difference.code, found.exit_code) == ("a", "not_compared", "INTERNAL", 1)
    assert difference.message == "table a: KeyError: 'gone'."
    assert "Comparing table a of load j met a fault of the program." in caplog.text


def test_verify_of_a_load_that_nothing_can_be_asked_about(monkeypatch):
    verifier = Verifier(controls(a=None, b=None), Clients(Access(bucket="b", region="us-east-1")))
    monkeypatch.setattr(Verifier, "_compare_load", lambda *_: (_ for _ in ()).throw(NoAnswerError("no answer.")))
    with pytest.raises(NoAnswerError):
        verifier.verify("j")


LATER = PendingUnrecoverableError("b/state.json cannot be used by this release.")
STATES: list[tuple[dict[str, Exception | None], dict[str, str], int]] = [
    # what reading each table's state raises, what is told of those that cannot be read, the exit code
    ({"a": None, "b": None}, {}, 0),
    ({"a": None, "b": LATER}, {"b": f"PENDING_UNRECOVERABLE: {LATER.message}"}, 1),
    ({"a": None, "b": KeyError("gone")}, {"b": f"INTERNAL: {FAULT.format('b')}"}, 1),
    ({"a": None, "b": NoAnswerError("no answer.")}, {"b": "TIMEOUT: no answer."}, 75),
]


@pytest.mark.parametrize(("faults", "told", "code"), STATES)
def test_status(tmp_path, monkeypatch, faults, told, code):
    class Opened:
        def controls(self) -> dict[str, Control]:
            return controls(**faults)

    monkeypatch.setattr(status_view, "open_context", lambda *_: Opened())
    result = CliRunner().invoke(main, ["status", str(tmp_path), "--json"])
    answer = json.loads(result.stdout)
    assert (answer["health"]["unreadable"], answer["health"]["exit_code"], result.exit_code) == (told, code, code)
    assert list(answer["tables"]) == [name for name in faults if name not in told]
    shown = CliRunner().invoke(main, ["status", str(tmp_path)])
    assert shown.exit_code == code
    assert "a" in shown.stdout


def test_no_state_can_be_read():
    with pytest.raises(PendingUnrecoverableError):
        status_view.read_states(controls(a=LATER, b=KeyError("gone")))


CODED: list[tuple[list[type[LakeError]], bool, int]] = [
    # why states cannot be read, whether a load waits, the exit code
    ([NoAnswerError], True, 75),
    ([NoAnswerError, InternalError], False, 1),
    ([InternalError], True, 1),
]


@pytest.mark.parametrize(("kinds", "waits", "code"), CODED)
def test_exit_code(kinds, waits, code):
    assert all(CODES[kind.code] is kind for kind in kinds)
    health = assess({}, None, datetime(2026, 1, 31, tzinfo=UTC), {kind.code: kind("x") for kind in kinds})
    waiting = ("load a of t is pending",) if waits else ()
    assert type(health)(waiting=waiting, unreadable=health.unreadable).exit_code == code
