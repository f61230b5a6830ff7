"""Make the dashboard of a pipeline's loads."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.pipeline.alarms import Watched
from infra.pipeline.metrics import LoadMetric


class LoadDashboard(Construct):
    """Alarms on top; then loads, data, job runs, and the last errors that the job printed."""

    def __init__(self, scope: Construct, id_: str, *, watched: Watched, alarms: list[cloudwatch.Alarm]) -> None:
        super().__init__(scope, id_)
        dashboard = cloudwatch.Dashboard(self, "Dashboard", default_interval=Duration.days(7))
        settings = watched.settings
        title = f"{settings.spec.pipeline}, stage {settings.stage}"
        dashboard.add_widgets(cloudwatch.AlarmStatusWidget(title=title, alarms=list(alarms), width=24, height=3))
        dashboard.add_widgets(*_make_load_graphs(watched))
        if settings.deployment.spark.mode == "STREAMING":
            dashboard.add_widgets(*_make_stream_graphs(watched))
        dashboard.add_widgets(*_make_job_run_graphs(watched))
        dashboard.add_widgets(
            cloudwatch.LogQueryWidget(
                title="Errors printed by the job",
                log_group_names=[watched.job_log.log_group_name],
                query_lines=[
                    "fields @timestamp, @message",
                    "filter @message like /^[A-Z][A-Z0-9_]+: /",
                    "sort @timestamp desc",
                    "limit 20",
                ],
                width=24,
                height=8,
            )
        )


def _make_load_graphs(watched: Watched) -> list[cloudwatch.IWidget]:
    hour, machine = Duration.hours(1), watched.state_machine
    ends = [
        watched.make_load_metric(LoadMetric.LOADS_DONE, "Sum", hour),
        machine.metric_failed(period=hour, statistic="Sum"),
        watched.make_load_metric(LoadMetric.ATTEMPTS_FAILED, "Sum", hour),
    ]
    return [
        _make_graph("Loads", *ends),
        _make_graph("Rows", watched.make_load_metric(LoadMetric.ROWS, "Sum", hour)),
        _make_graph(
            "Bytes and files",
            watched.make_load_metric(LoadMetric.BYTES, "Sum", hour),
            right=watched.make_load_metric(LoadMetric.FILES, "Sum", hour),
        ),
        _make_graph(
            "Seconds of a load",
            *(watched.make_load_metric(LoadMetric.SECONDS, statistic, hour) for statistic in ("Average", "Maximum")),
        ),
    ]


def _make_stream_graphs(watched: Watched) -> list[cloudwatch.IWidget]:
    minute = Duration.minutes(1)

    def make(metric: str, statistic: str) -> cloudwatch.Metric:
        return watched.make_load_metric(metric, statistic, minute)

    return [
        _make_graph(
            "Seconds behind the source, and waited", make("FreshnessSeconds", "Maximum"), make("LagSeconds", "Maximum")
        ),
        _make_graph("Rows a minute", make("StreamedRows", "Sum"), right=make("StreamedFiles", "Sum")),
        _make_graph("Failures", make("Failures", "Sum"), make("FailedTables", "Sum")),
    ]


def _make_job_run_graphs(watched: Watched) -> list[cloudwatch.IWidget]:
    five = Duration.minutes(5)
    return [
        _make_graph("Job runs", watched.make_emr_metric("RunningJobs", period=five), watched.make_waiting_metric()),
        _make_graph("vCPUs", watched.make_emr_metric("CPUAllocated", period=five)),
        _make_graph("Memory, GB", watched.make_emr_metric("MemoryAllocated", period=five)),
        _make_graph(
            "Hours that an intent is pending",
            watched.make_load_metric(LoadMetric.PENDING_HOURS, "Maximum", Duration.hours(1)),
        ),
    ]


def _make_graph(
    title: str, *left: cloudwatch.IMetric, right: cloudwatch.IMetric | None = None
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(left), right=[right] if right else [], width=6, height=6)
