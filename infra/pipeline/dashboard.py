"""One page that shows how the loads are doing."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.pipeline.alarms import Watched
from infra.pipeline.metrics import Told


class LoadDashboard(Construct):
    """Alarms on top; then loads, data, job runs, and what the job last complained of."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        watched: Watched,
        alarms: list[cloudwatch.Alarm],
        job_log: logs.ILogGroup,
    ) -> None:
        super().__init__(scope, id_)
        dashboard = cloudwatch.Dashboard(self, "Dashboard", default_interval=Duration.days(7))
        settings = watched.settings
        title = f"{settings.spec.pipeline}, stage {settings.stage}"
        dashboard.add_widgets(cloudwatch.AlarmStatusWidget(title=title, alarms=list(alarms), width=24, height=3))
        dashboard.add_widgets(*_of_loads(watched))
        dashboard.add_widgets(*_of_job_runs(watched))
        dashboard.add_widgets(
            cloudwatch.LogQueryWidget(
                title="Failures that the job printed",
                log_group_names=[job_log.log_group_name],
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


def _of_loads(watched: Watched) -> list[cloudwatch.IWidget]:
    hour, machine = Duration.hours(1), watched.state_machine
    ends = [
        watched.told(Told.LOADS_DONE, "Sum", hour),
        machine.metric_failed(period=hour, statistic="Sum"),
        watched.told(Told.ATTEMPTS_FAILED, "Sum", hour),
    ]
    return [
        _graph("Loads", *ends),
        _graph("Rows", watched.told(Told.ROWS, "Sum", hour)),
        _graph("Bytes and files", watched.told(Told.BYTES, "Sum", hour), right=watched.told(Told.FILES, "Sum", hour)),
        _graph("Seconds of a load", *(watched.told(Told.SECONDS, each, hour) for each in ("Average", "Maximum"))),
    ]


def _of_job_runs(watched: Watched) -> list[cloudwatch.IWidget]:
    five = Duration.minutes(5)
    return [
        _graph("Job runs", watched.emr("RunningJobs", period=five), watched.waiting()),
        _graph("vCPUs", watched.emr("CPUAllocated", period=five)),
        _graph("Memory, GB", watched.emr("MemoryAllocated", period=five)),
        _graph("Hours that an intent is pending", watched.told(Told.PENDING_HOURS, "Maximum", Duration.hours(1))),
    ]


def _graph(title: str, *left: cloudwatch.IMetric, right: cloudwatch.IMetric | None = None) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(left), right=[right] if right else [], width=6, height=6)
