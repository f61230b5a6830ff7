"""What a continuous run shows: JSON lines for monitors, and a terminal on which failures are told whole."""

import io
import json

from rich.console import Console

from lakewriter.cli.continuous_view import show_batches, show_continuous
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.run.continuous_status import BatchMetrics, TableStatus
from tests.dialects.flows import bindings
from tests.run.test_continuous_metrics import AT, METRICS, status

BATCH = BatchMetrics(
    time=AT, pipeline="wiki", table="changes", batch=3, job_id="j", status="done", rows=1000, files=1, small_files=1,
    bytes=900, changes=0, lag_seconds=3.5, seconds=2.0,
)  # fmt: skip
MESSAGE = "SOURCE_UNREACHABLE: " + "its source is not there yet; " * 10


def shown(tmp_path, tell, *, terminal, **top):
    """What is printed."""
    spec = load_spec(bindings(tmp_path, top=top))
    file = io.StringIO()
    errors = Console(file=file, force_terminal=terminal, width=100, color_system=None)
    with show_batches(spec, errors, "prod") as watch:
        tell(watch, spec.tables[0])
    return file.getvalue()


def tell_all(watch, table):
    watch.step(table, "beginning", "batch 3:")
    watch.step(table, "note", "values of 'vip' are left out")
    watch.batch(table, BATCH)
    watch.minute([METRICS])
    watch.step(table, "failed", MESSAGE)


def test_lines(tmp_path):
    note, batch, minute, failed = map(json.loads, shown(tmp_path, tell_all, terminal=False).splitlines())
    assert (note["step"], note["detail"]) == ("note", "values of 'vip' are left out")
    assert (batch["step"], batch["rows"], batch["lag_seconds"]) == ("batch", 1000, 3.5)
    assert (minute["step"], minute["Stage"], minute["FreshnessSeconds"]) == ("minute", "prod", 12.5)
    assert (failed["step"], failed["detail"]) == ("failed", MESSAGE)


def test_metrics_that_are_sent_are_not_counted_again(tmp_path):
    lines = shown(tmp_path, lambda watch, _: watch.minute([METRICS]), terminal=False, put_metrics=True).splitlines()
    assert "_aws" not in json.loads(lines[0])


def test_terminal(tmp_path):
    text = shown(tmp_path, tell_all, terminal=True)
    name = load_spec(bindings(tmp_path)).tables[0].id
    assert f"{name} failed for good; other tables go on: {MESSAGE}" in text.replace("\n", "")
    assert f"✗  {name}  failed  1 failure; SOURCE_UNREACHABLE" in text


def test_a_table_that_ends_the_run(tmp_path):
    text = shown(tmp_path, lambda watch, table: watch.step(table, "failed", "x"), terminal=True, on_failure="stop")
    assert "failed for good; the run ends: x" in text


def test_a_batch_tells_its_lag_and_its_rate(tmp_path):
    text = shown(tmp_path, lambda watch, table: watch.batch(table, BATCH), terminal=True)
    assert "lag 3.5 s, 500 rows/s; batch 3: 1,000 rows in 1 file, 2.0 s" in text


def test_summary():
    file = io.StringIO()
    table = TableStatus(state="stopped", batches=2, rows=20, files=2, small_files=2, bytes=900, files_a_day=17_280)
    show_continuous(Console(file=file, width=100), status(AT - AT, changes=table))
    assert "changes  stopped        2    20      2      2       17,280  900 B         0" in file.getvalue()
