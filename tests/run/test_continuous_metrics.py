"""Metrics of a continuous run, without one."""

import json
from datetime import UTC, datetime, timedelta

from lakewriter.run.continuous_metrics import MinuteMetrics, Minutes, put_metrics, tell_minutes, write_embedded
from lakewriter.run.continuous_status import BatchMetrics, RunStatus, TableStatus

AT = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
METRICS = MinuteMetrics(
    time=AT, pipeline="wiki", table="changes", state="running", freshness_seconds=12.5, lag_seconds=3.0, batches=2,
    rows=20, files=2, bytes=900, failures=1,
)  # fmt: skip


def status(after: timedelta, **tables: TableStatus) -> RunStatus:
    return RunStatus(
        pipeline="wiki", run="r", state="running", started_at=AT, at=AT + after, interval_seconds=5, tables=tables
    )


def batch(lag: float) -> BatchMetrics:
    return BatchMetrics(
        time=AT, pipeline="wiki", table="changes", batch=0, job_id="j", status="done", rows=1, files=1, small_files=1,
        bytes=1, changes=0, lag_seconds=lag, seconds=1,
    )  # fmt: skip


def test_minutes_take_what_came_since():
    minutes, minute = Minutes(), timedelta(minutes=1)
    first = TableStatus(state="running", batches=2, rows=20, files=2, bytes=900, fresh_at=AT, last=batch(7.0))
    (found,) = minutes.take(status(minute, changes=first))
    assert (found.batches, found.rows, found.files, found.bytes, found.lag_seconds) == (2, 20, 2, 900, 7.0)
    (found,) = minutes.take(status(2 * minute, changes=first))
    assert (found.batches, found.rows, found.lag_seconds, found.freshness_seconds) == (0, 0, None, 120.0)
    second = first.model_copy(update={"rows": 25, "batches": 3, "failures": 2})
    (found,) = minutes.take(status(3 * minute, changes=second))
    assert (found.batches, found.rows, found.failures, found.lag_seconds) == (1, 5, 2, 7.0)


def test_a_table_that_was_never_fresh_is_as_old_as_the_run():
    (found,) = Minutes().take(status(timedelta(hours=2), changes=TableStatus(state="failed", code="TIMEOUT")))
    assert (found.freshness_seconds, found.values["FailedTables"], found.code) == (7200.0, 1, "TIMEOUT")


def test_embedded():
    """https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html"""
    assert json.loads(write_embedded(METRICS, "prod")) == {
        "step": "minute", "version": 1, "time": "2024-01-15T10:30:00Z", "pipeline": "wiki", "table": "changes",
        "state": "running", "freshness_seconds": 12.5, "lag_seconds": 3.0, "batches": 2, "rows": 20, "files": 2,
        "bytes": 900, "failures": 1,
        "_aws": {
            "Timestamp": 1705314600000,
            "CloudWatchMetrics": [{
                "Namespace": "Lakewriter",
                "Dimensions": [["Pipeline", "Stage"], ["Pipeline", "Stage", "Table"]],
                "Metrics": [
                    {"Name": "FreshnessSeconds", "Unit": "Seconds"}, {"Name": "LagSeconds", "Unit": "Seconds"},
                    {"Name": "FailedTables", "Unit": "Count"}, {"Name": "Failures", "Unit": "Count"},
                    {"Name": "StreamedRows", "Unit": "Count"}, {"Name": "StreamedFiles", "Unit": "Count"},
                ],
            }],
        },
        "Pipeline": "wiki", "Stage": "prod", "Table": "changes",
        "FreshnessSeconds": 12.5, "LagSeconds": 3.0, "FailedTables": 0, "Failures": 1, "StreamedRows": 20,
        "StreamedFiles": 2,
    }  # fmt: skip


def test_a_minute_without_a_batch_has_no_lag():
    line = json.loads(write_embedded(METRICS.model_copy(update={"lag_seconds": None}), "prod"))
    assert "LagSeconds" not in line
    assert {"Name": "LagSeconds", "Unit": "Seconds"} not in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]


class Client:
    """Takes what CloudWatch would."""

    def __init__(self):
        self.calls = []

    def put_metric_data(self, **arguments):
        self.calls.append(arguments)


def test_put():
    client = Client()
    put_metrics(client, [METRICS], "prod")
    (call,) = client.calls
    assert (call["Namespace"], len(call["MetricData"])) == ("Lakewriter", 12)
    run = [{"Name": "Pipeline", "Value": "wiki"}, {"Name": "Stage", "Value": "prod"}]
    assert call["MetricData"][0] == {
        "MetricName": "FreshnessSeconds", "Dimensions": run, "Timestamp": AT, "Value": 12.5, "Unit": "Seconds"
    }  # fmt: skip
    assert call["MetricData"][-1] == {
        "MetricName": "StreamedFiles", "Dimensions": [*run, {"Name": "Table", "Value": "changes"}], "Timestamp": AT,
        "Value": 2, "Unit": "Count",
    }  # fmt: skip


def test_put_takes_a_thousand_at_a_time():
    client = Client()
    put_metrics(client, [METRICS] * 100, "prod")
    assert [len(call["MetricData"]) for call in client.calls] == [1000, 200]


class Beats:
    """An event that is set after so many waits of a minute."""

    def __init__(self, minutes: int) -> None:
        self.left = minutes

    def wait(self, seconds: float) -> bool:
        assert seconds == 60
        self.left -= 1
        return self.left < 0


def test_the_rest_is_told_at_the_end():
    told: list[list[MinuteMetrics]] = []
    tell_minutes(lambda: status(timedelta(0), changes=TableStatus()), told.append, Beats(2))
    assert len(told) == 3
