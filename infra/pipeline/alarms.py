"""When to call somebody: alarms, and the topic by which they call."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.cron import periods
from infra.pipeline.application import Application
from infra.pipeline.metrics import NAMESPACE, Told, dimensions
from infra.settings import Settings
from lakewriter.spec.deployment import Deployment

PENDING_HOURS: Final = 24
"""An intent that is pending for so long needs somebody to look at it."""

LONGEST_SILENCE: Final = 168
"""Hours that an alarm with periods of an hour can look back.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
"""

WAITING: Final = ("SubmittedJobs", "QueuedJobs", "PendingJobs", "ScheduledJobs")
"""Counts of job runs that have not begun.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-job-metrics.html
"""

Silence = cloudwatch.TreatMissingData


@dataclass(frozen=True)
class Watched:
    """What the alarms look at."""

    settings: Settings
    application: Application
    state_machine: sfn.IStateMachine
    dead_letters: sqs.IQueue | None
    """None without a schedule."""

    def told(self, metric: Told, statistic: str, period: Duration) -> cloudwatch.Metric:
        """One of the metrics that the state machine writes."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=metric,
            dimensions_map=dimensions(self.settings),
            statistic=statistic,
            period=period,
        )

    def emr(self, name: str, statistic: str = "Maximum", period: Duration | None = None) -> cloudwatch.Metric:
        """One of the application's."""
        return cloudwatch.Metric(
            namespace="AWS/EMRServerless",
            metric_name=name,
            dimensions_map={
                "ApplicationId": self.application.application_id,
                "ApplicationName": self.application.name,
            },
            statistic=statistic,
            period=period or Duration.minutes(1),
        )

    def waiting(self) -> cloudwatch.MathExpression:
        """Job runs that have not begun; a metric without data counts as none."""
        metrics = {f"m{number}": self.emr(name) for number, name in enumerate(WAITING)}
        return cloudwatch.MathExpression(
            expression="SUM(METRICS())", using_metrics=metrics, label="Waiting", period=Duration.minutes(1)
        )


class Alarms(Construct):
    """``all``; they call the topic that is given or made, or nobody."""

    def __init__(self, scope: Construct, id_: str, *, watched: Watched, key: kms.IKey | None) -> None:
        super().__init__(scope, id_)
        self.all: list[cloudwatch.Alarm] = [*self._of_loads(watched), *self._of_starts(watched)]
        topic = self._topic(watched.settings, key)
        if topic is not None:
            for alarm in self.all:
                alarm.add_alarm_action(actions.SnsAction(topic))

    def _of_loads(self, watched: Watched) -> Iterator[cloudwatch.Alarm]:
        five, machine = Duration.minutes(5), watched.state_machine
        yield self._alarm("Failed", machine.metric_failed(period=five, statistic="Sum"), "A load failed.")
        yield self._alarm(
            "TimedOut",
            machine.metric_timed_out(period=five, statistic="Sum"),
            "A load took longer than all its attempts may.",
        )
        yield self._alarm(
            "Pending",
            watched.told(Told.PENDING_HOURS, "Maximum", five),
            f"A load has been half committed for {PENDING_HOURS} hours; 'lakewriter status' shows which.",
            threshold=PENDING_HOURS,
            # It was told by the last load and holds until the next one tells otherwise.
            missing=Silence.IGNORE,
        )

    def _of_starts(self, watched: Watched) -> Iterator[cloudwatch.Alarm]:
        deployment = watched.settings.deployment
        yield self._alarm(
            "Queued",
            watched.waiting(),
            f"A job run has waited for {deployment.alarms.queued_minutes} minutes; look at the account's vCPU quota.",
            periods=deployment.alarms.queued_minutes,
        )
        if watched.dead_letters:
            letters = watched.dead_letters.metric_approximate_number_of_messages_visible(
                period=Duration.minutes(5), statistic="Maximum"
            )
            yield self._alarm("DeadLetters", letters, "A scheduled start could not be delivered; its queue says why.")
        if hours := silence_hours(deployment):
            yield self._alarm(
                "NoSuccess",
                watched.told(Told.LOADS_DONE, "Sum", Duration.hours(1)),
                f"No load was done for {hours} hours. A stack just made has this alarm until its first load is done.",
                periods=hours,
                below=True,
                missing=Silence.BREACHING,
            )

    def _alarm(
        self,
        id_: str,
        metric: cloudwatch.IMetric,
        description: str,
        *,
        threshold: float = 1,
        periods: int = 1,
        below: bool = False,
        missing: cloudwatch.TreatMissingData = Silence.NOT_BREACHING,
    ) -> cloudwatch.Alarm:
        operator = cloudwatch.ComparisonOperator
        return cloudwatch.Alarm(
            self,
            id_,
            metric=metric,
            alarm_description=f"{Stack.of(self).stack_name}: {description}",
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=operator.LESS_THAN_THRESHOLD if below else operator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=missing,
        )

    def _topic(self, settings: Settings, key: kms.IKey | None) -> sns.ITopic | None:
        given = settings.deployment.alarms
        if given.topic_arn:
            return sns.Topic.from_topic_arn(self, "Topic", given.topic_arn)
        return EmailTopic(self, "Email", address=given.email, key=key).topic if given.email else None


def silence_hours(deployment: Deployment) -> int | None:
    """Without a success for so long, something is wrong; None where no start is due within what an alarm can see."""
    schedule, spark = deployment.schedule, deployment.spark
    if schedule is None or not schedule.enabled or spark.mode == "STREAMING":
        return None
    if deployment.alarms.no_success_hours:
        return deployment.alarms.no_success_hours
    found = periods(schedule)
    if found is None:
        return None
    whole = found[1] + timedelta(
        minutes=schedule.flexible_minutes + spark.queue_timeout_minutes + spark.timeout_minutes
    )
    hours = math.ceil(whole / timedelta(hours=1))
    return hours if hours <= LONGEST_SILENCE else None


class EmailTopic(Construct):
    """Encrypted, and CloudWatch's alarms of this account alone may publish."""

    def __init__(self, scope: Construct, id_: str, *, address: str, key: kms.IKey | None) -> None:
        super().__init__(scope, id_)
        account = {"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
        cloudwatch_alarms = iam.ServicePrincipal("cloudwatch.amazonaws.com")
        if key is None:
            # The key that AWS manages for SNS admits no service, so an alarm could not publish.
            key = kms.Key(
                self,
                "Key",
                description=f"{Stack.of(self).stack_name}: alarms",
                enable_key_rotation=True,
                removal_policy=RemovalPolicy.DESTROY,
            )
            key.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="NotifyOfAlarms",
                    principals=[cloudwatch_alarms],
                    actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                    resources=["*"],
                    conditions=account,
                )
            )
        self.topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsOfThisAccount",
                principals=[cloudwatch_alarms],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions=account,
            )
        )
        self.topic.add_subscription(subscriptions.EmailSubscription(address))
