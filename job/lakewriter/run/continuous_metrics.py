"""Measure each table of a continuous run every minute: how fresh it is, what it has taken, and what has failed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Literal, Protocol

from lakewriter import aws
from lakewriter.run.continuous_status import Over, RunStatus, TableState, TableStatus
from lakewriter.spec.model import Model
from lakewriter.spec.specification import METRICS_NAMESPACE, Spec

MINUTE: Final = 60.0
_UNITS: Final = {
    "FreshnessSeconds": "Seconds",
    "LagSeconds": "Seconds",
    "FailedTables": "Count",
    "Failures": "Count",
    "StreamedRows": "Count",
    "StreamedFiles": "Count",
}
_MOST_DATA: Final = 1000
"""Metrics that one PutMetricData takes.

See: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html
"""


class MinuteMetrics(Model):
    """One table in one minute.

    ``freshness_seconds`` is how long ago the table was last known to have all that its source had; it grows while the
    source waits, is not read, or the table has failed, and not while nothing arrives. ``lag_seconds`` is that of the
    last batch that ended in this minute. ``failures`` are those after which the query was started again, or ended.
    """

    version: Literal[1] = 1
    time: datetime
    pipeline: str
    table: str
    state: TableState
    freshness_seconds: float
    lag_seconds: float | None
    batches: int
    rows: int
    files: int
    bytes: int
    failures: int
    code: str | None = None
    message: str | None = None

    @property
    def values(self) -> Mapping[str, float]:
        """The metrics that have a value."""
        values_by_name = {
            "FreshnessSeconds": self.freshness_seconds,
            "LagSeconds": self.lag_seconds,
            "FailedTables": int(self.state == "failed"),
            "Failures": self.failures,
            "StreamedRows": self.rows,
            "StreamedFiles": self.files,
        }
        return {name: value for name, value in values_by_name.items() if value is not None}


class Minutes:
    """Computes what is new in a run's status since the last call."""

    def __init__(self) -> None:
        self._before: Mapping[str, TableStatus] = {}

    def take(self, status: RunStatus) -> list[MinuteMetrics]:
        """Return the metrics of every table since the last call."""
        described = [self._describe(status, name, table) for name, table in status.tables.items()]
        self._before = status.tables
        return described

    def _describe(self, status: RunStatus, name: str, now: TableStatus) -> MinuteMetrics:
        before = self._before.get(name, TableStatus())
        batches = now.batches - before.batches
        return MinuteMetrics(
            time=status.at,
            pipeline=status.pipeline,
            table=name,
            state=now.state,
            freshness_seconds=round((status.at - (now.fresh_at or status.started_at)).total_seconds(), 3),
            lag_seconds=now.last.lag_seconds if batches and now.last is not None else None,
            batches=batches,
            rows=now.rows - before.rows,
            files=now.files - before.files,
            bytes=now.bytes - before.bytes,
            failures=now.failures - before.failures,
            code=now.code,
            message=now.message,
        )


class CloudWatch(Protocol):
    """The client's one call."""

    def put_metric_data(self, **arguments: Any) -> Any:
        """https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html"""


Send = Callable[[list[MinuteMetrics]], None]


def make_sender(spec: Spec, stage: str) -> Send | None:
    """Make the sender of metrics to CloudWatch, with the job's own credentials and in the bucket's region; None if the
    file asks for none.

    The sender raises an error that explains why metrics cannot be sent.
    """
    if not spec.put_metrics:
        return None
    client = aws.make_default_client("cloudwatch", spec.access.region)

    def send(minute: list[MinuteMetrics]) -> None:
        try:
            put_metrics(client, minute, stage)
        except (aws.ClientError, aws.BotoCoreError) as error:
            raise aws.explain(error, doing="cloudwatch:PutMetricData", access=spec.access) from error

    return send


def write_embedded(metrics: MinuteMetrics, stage: str) -> str:
    """Return a line of JSON from which CloudWatch Logs makes metrics: by pipeline and stage, and by table.

    See: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    directive = {
        "Namespace": METRICS_NAMESPACE,
        "Dimensions": [["Pipeline", "Stage"], ["Pipeline", "Stage", "Table"]],
        "Metrics": [{"Name": name, "Unit": _UNITS[name]} for name in metrics.values],
    }
    embedded = {"Timestamp": int(metrics.time.timestamp() * 1000), "CloudWatchMetrics": [directive]}
    named = {"Pipeline": metrics.pipeline, "Stage": stage, "Table": metrics.table}
    return json.dumps({**write_plain(metrics), "_aws": embedded, **named, **metrics.values})


def write_plain(metrics: MinuteMetrics) -> dict[str, Any]:
    """Return the metrics as people read them."""
    return {"step": "minute", **metrics.model_dump(mode="json", exclude_none=True)}


def put_metrics(client: CloudWatch, minute: Iterable[MinuteMetrics], stage: str) -> None:
    """Send a minute's metrics; errors of the client are raised as they are."""
    data = [datum for metrics in minute for datum in _make_data(metrics, stage)]
    for start in range(0, len(data), _MOST_DATA):
        client.put_metric_data(Namespace=METRICS_NAMESPACE, MetricData=data[start : start + _MOST_DATA])


def _make_data(metrics: MinuteMetrics, stage: str) -> Iterator[dict[str, Any]]:
    run = [{"Name": "Pipeline", "Value": metrics.pipeline}, {"Name": "Stage", "Value": stage}]
    for dimensions in (run, [*run, {"Name": "Table", "Value": metrics.table}]):
        for name, value in metrics.values.items():
            yield {
                "MetricName": name,
                "Dimensions": dimensions,
                "Timestamp": metrics.time,
                "Value": value,
                "Unit": _UNITS[name],
            }


def tell_minutes(describe: Callable[[], RunStatus], tell: Callable[[list[MinuteMetrics]], None], over: Over) -> None:
    """Report the metrics every minute, and the rest at the end."""
    minutes = Minutes()
    while not over.wait(MINUTE):
        tell(minutes.take(describe()))
    tell(minutes.take(describe()))
