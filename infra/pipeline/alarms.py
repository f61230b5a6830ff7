"""Make the alarms of a pipeline, and the topic that they notify."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Annotations, Duration, RemovalPolicy, Stack
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.destination.key import add_key_policy, allow_notifications
from infra.pipeline.application import Application
from infra.pipeline.metrics import NAMESPACE, LoadMetric, make_dimensions
from infra.pipeline.silence import compute_silence_hours, compute_tick_hours
from infra.pipeline.stream_alarms import list_stream_alarms
from infra.settings import Settings
from lakewriter.policy.arns import Arns, name_principal
from lakewriter.spec.deployment import STACK_TAG

RUNBOOK: Final = "docs/troubleshooting.md"

PENDING_HOURS: Final = 24
"""After so many hours a pending commit raises an alarm."""

WAITING: Final = ("SubmittedJobs", "QueuedJobs", "PendingJobs", "ScheduledJobs")
"""Metrics that count job runs which have not started.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-job-metrics.html
"""

BUDGET_THRESHOLDS: Final = (("ACTUAL", 80), ("FORECASTED", 100))
"""The costs that raise an alarm, so far and as forecast for the month, in percent of the budget."""

Silence = cloudwatch.TreatMissingData


@dataclass(frozen=True)
class Watched:
    """The resources that alarms and dashboard watch."""

    settings: Settings
    application: Application
    state_machine: sfn.IStateMachine
    handover: sfn.IStateMachine
    silence: sfn.IStateMachine | None
    """None where no success is expected by a time."""
    dead_letters: sqs.IQueue | None
    """None without a schedule."""
    job_log: logs.ILogGroup
    load_log: logs.ILogGroup
    rules: tuple[str, ...]
    """The names of the stack's rules of EventBridge, but for the one that Alarms adds."""

    @property
    def hints(self) -> str:
        """Return where to look, whatever has happened."""
        return (
            f"Executions: {self.state_machine.state_machine_arn}. Log groups: {self.job_log.log_group_name} (job), "
            f"{self.load_log.log_group_name} (steps)."
        )

    def make_load_metric(self, metric: str, statistic: str, period: Duration) -> cloudwatch.Metric:
        """Make one of the metrics that the state machine or a continuous run publishes."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=metric,
            dimensions_map=make_dimensions(self.settings),
            statistic=statistic,
            period=period,
        )

    def make_emr_metric(
        self, name: str, statistic: str = "Maximum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Make one of the application's metrics."""
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

    def make_waiting_metric(self) -> cloudwatch.MathExpression:
        """Make the sum of job runs that have not started; a metric without data counts as 0."""
        metrics = {f"m{number}": self.make_emr_metric(name) for number, name in enumerate(WAITING)}
        return cloudwatch.MathExpression(
            expression="SUM(METRICS())", using_metrics=metrics, label="Waiting", period=Duration.minutes(1)
        )


class Budget(Construct):
    """A budget of what the stage's resources and job runs cost a month, by their tag.

    https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-create.html
    """

    def __init__(self, scope: Construct, id_: str, *, settings: Settings) -> None:
        super().__init__(scope, id_)
        given = settings.deployment.alarms
        kind, address = ("SNS", given.topic_arn) if given.topic_arn else ("EMAIL", given.email)
        assert address is not None
        subscriber = budgets.CfnBudget.SubscriberProperty(subscription_type=kind, address=address)
        budgets.CfnBudget(
            self,
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                # Its subscribers cannot be changed: a budget with another address is made first, under another name.
                budget_name=f"{settings.name}-{hashlib.sha256(address.encode()).hexdigest()[:8]}",
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=given.monthly_budget_usd or 0, unit="USD"),
                filter_expression=budgets.CfnBudget.ExpressionProperty(
                    tags=budgets.CfnBudget.TagValuesProperty(key=STACK_TAG, values=[*settings.stack_names])
                ),
                metrics=["UnblendedCost"],
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        comparison_operator="GREATER_THAN", notification_type=of, threshold=percent
                    ),
                    subscribers=[subscriber],
                )
                for of, percent in BUDGET_THRESHOLDS
            ],
        )


class Alarms(Construct):
    """``all`` alarms; they notify the given topic or a new one, if either is configured."""

    def __init__(self, scope: Construct, id_: str, *, watched: Watched, key: kms.IKey | None) -> None:
        super().__init__(scope, id_)
        self._hints = watched.hints
        topic = self._make_topic(watched, key)
        telling = (
            self._mail_failed_loads(watched, topic) if topic and watched.settings.deployment.alarms.email else None
        )
        self.all: list[cloudwatch.Alarm] = [
            *self._make_load_alarms(watched),
            *self._make_start_alarms(watched),
            *self._make_stream_alarms(watched),
            self._make_rules_alarm([*watched.rules, *([telling] if telling else [])]),
        ]
        if topic is None:
            Annotations.of(self).add_warning_v2(
                "lakewriter:alarms",
                "Nobody will be called when a load fails: the alarms have nobody to notify. Give deployment.alarms an "
                "'email' or a 'topic_arn'.",
            )
            return
        for alarm in self.all:
            alarm.add_alarm_action(actions.SnsAction(topic))
        if watched.settings.deployment.alarms.monthly_budget_usd:
            Budget(self, "Costs", settings=watched.settings)

    def _make_load_alarms(self, watched: Watched) -> Iterator[cloudwatch.Alarm]:
        """Make the alarms of loads that did not succeed."""
        five, machine = Duration.minutes(5), watched.state_machine
        yield self._make_alarm(
            "Failed",
            machine.metric_failed(period=five, statistic="Sum"),
            "A load failed: the newest execution that FAILED.",
        )
        yield self._make_alarm(
            "TimedOut",
            machine.metric_timed_out(period=five, statistic="Sum"),
            "A load exceeded the time limit of all its attempts: the newest execution that TIMED_OUT.",
        )
        yield self._make_alarm(
            "Expectations",
            watched.make_load_metric(LoadMetric.EXPECTATIONS_FAILED, "Sum", five),
            "A load's data is not as its table's 'expect' says, and was not published.",
        )
        yield self._make_alarm(
            "Pending",
            watched.make_load_metric(LoadMetric.PENDING_HOURS, "Maximum", five),
            f"A commit has been pending for {PENDING_HOURS} hours; 'lakewriter status' shows which load.",
            threshold=PENDING_HOURS,
            # Published once per load: the value stays valid until the next load publishes another.
            missing=Silence.IGNORE,
        )

        failed, late = (metric(period=five, statistic="Sum") for metric in _list_ends(watched.handover))
        ends = cloudwatch.MathExpression(
            expression="SUM([failed, late])", using_metrics={"failed": failed, "late": late}, period=five
        )
        yield self._make_alarm(
            "Handover",
            ends,
            "After a deployment, a stream could not be handed over or an earlier application could not be deleted.",
        )

    def _make_start_alarms(self, watched: Watched) -> Iterator[cloudwatch.Alarm]:
        deployment = watched.settings.deployment
        yield self._make_alarm(
            "Queued",
            watched.make_waiting_metric(),
            f"A job run has waited {deployment.alarms.queued_minutes} minutes to start; check the vCPU quota.",
            periods=deployment.alarms.queued_minutes,
        )
        if watched.dead_letters:
            letters = watched.dead_letters.metric_approximate_number_of_messages_visible(
                period=Duration.minutes(5), statistic="Maximum"
            )
            yield self._make_alarm(
                "DeadLetters", letters, "A scheduled start was not delivered; its message in the queue says why."
            )
        if watched.silence and (hours := compute_silence_hours(deployment)):
            yield self._make_alarm(
                "NoSuccess",
                # Two values in each period, of which the last may be 0 again.
                watched.make_load_metric(
                    LoadMetric.HOURS_WITHOUT_SUCCESS, "Minimum", Duration.hours(2 * compute_tick_hours(hours))
                ),
                f"No load has succeeded for {hours} hours, or since the stack was made.",
                threshold=hours,
                # A new stack has no value yet. Where the values end, the alarm of their state machine calls.
                missing=Silence.IGNORE,
            )
            ends = [metric(period=Duration.minutes(5), statistic="Sum") for metric in _list_ends(watched.silence)]
            ends.append(watched.silence.metric_aborted(period=Duration.minutes(5), statistic="Sum"))
            yield self._make_alarm(
                "Watch",
                cloudwatch.MathExpression(
                    expression="SUM(METRICS())",
                    using_metrics={f"m{number}": metric for number, metric in enumerate(ends)},
                    period=Duration.minutes(5),
                ),
                "The hours without a success are not counted any more: the alarm NoSuccess sees nothing.",
            )

    def _make_stream_alarms(self, watched: Watched) -> Iterator[cloudwatch.Alarm]:
        for stream_alarm in list_stream_alarms(watched.settings):
            yield self._make_alarm(
                stream_alarm.id,
                watched.make_load_metric(stream_alarm.metric, stream_alarm.statistic, Duration.minutes(1)),
                stream_alarm.description,
                threshold=stream_alarm.threshold,
                periods=stream_alarm.periods,
                below=stream_alarm.is_below,
                missing=stream_alarm.missing,
            )

    def _make_rules_alarm(self, rules: Sequence[str]) -> cloudwatch.Alarm:
        """Make the alarm of events that EventBridge could not deliver, which nothing else shows.

        https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-monitoring.html
        """
        metrics = {
            f"m{number}": cloudwatch.Metric(
                namespace="AWS/Events",
                metric_name="FailedInvocations",
                dimensions_map={"RuleName": rule},
                statistic="Sum",
                period=Duration.minutes(5),
            )
            for number, rule in enumerate(rules)
        }
        return self._make_alarm(
            "Rules",
            cloudwatch.MathExpression(expression="SUM(METRICS())", using_metrics=metrics, period=Duration.minutes(5)),
            "EventBridge could not deliver an event: the mail that names a failed load, or the start of a handover.",
        )

    def _make_alarm(
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
            alarm_description=(
                f"{Stack.of(self).stack_name}: {description} {self._hints} What to do: {RUNBOOK}#{id_.lower()}."
            ),
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=operator.LESS_THAN_THRESHOLD if below else operator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=missing,
        )

    def _make_topic(self, watched: Watched, key: kms.IKey | None) -> sns.ITopic | None:
        given = watched.settings.deployment.alarms
        if given.topic_arn:
            services = map(name_principal, ["cloudwatch", *(["budgets"] if given.monthly_budget_usd else [])])
            Annotations.of(self).add_warning_v2(
                "lakewriter:topic",
                f"Topic {given.topic_arn} is used as it is. Its policy has to let {' and '.join(services)} publish. If "
                "it is under a KMS key, that has to be one of yours, whose policy lets the same use kms:Decrypt and "
                "kms:GenerateDataKey*: SNS's own key admits no service.",
            )
            return sns.Topic.from_topic_arn(self, "Topic", given.topic_arn)
        if not given.email:
            return None
        Annotations.of(self).add_warning_v2(
            "lakewriter:confirm",
            f"{given.email} gets a mail of SNS when the stack is made, and has to confirm the subscription by its "
            "link: until then no alarm reaches anybody.",
        )
        return EmailTopic(self, "Email", settings=watched.settings, address=given.email, key=key).topic

    def _mail_failed_loads(self, watched: Watched, topic: sns.ITopic) -> str:
        """Send a message that names the execution, which an alarm cannot; return the name of the rule.

        A cause may hold quotes, which would break the message; its error is the title of an entry of the runbook.
        """
        text = (
            f"{Stack.of(self).stack_name}: load <name> ended as <status>: <error>. Execution: <execution>. "
            f"{watched.hints} What to do: {RUNBOOK}, under <error>."
        )
        fields = {"name": "name", "execution": "executionArn", "status": "status", "error": "error"}
        rule = events.CfnRule(
            self,
            "FailedLoad",
            event_pattern={
                "source": ["aws.states"],
                "detail-type": ["Step Functions Execution Status Change"],
                "detail": {
                    "stateMachineArn": [watched.state_machine.state_machine_arn],
                    "status": ["FAILED", "TIMED_OUT"],
                },
            },
            state="ENABLED",
            targets=[
                events.CfnRule.TargetProperty(
                    id="Topic",
                    arn=topic.topic_arn,
                    input_transformer=events.CfnRule.InputTransformerProperty(
                        input_paths_map={name: f"$.detail.{field}" for name, field in fields.items()},
                        input_template=f'"{text}"',
                    ),
                )
            ],
        )
        name: str = rule.ref
        return name


def _list_ends(machine: sfn.IStateMachine) -> tuple[Callable[..., cloudwatch.Metric], ...]:
    """List the metrics of executions that did not succeed."""
    return machine.metric_failed, machine.metric_timed_out


class EmailTopic(Construct):
    """An encrypted topic with an e-mail subscription, to which only alarms and rules may publish."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings, address: str, key: kms.IKey | None) -> None:
        super().__init__(scope, id_)
        stack = Stack.of(self)
        if key is None:
            # Alarms cannot publish to a topic under the AWS managed key of SNS, whose policy admits no service.
            made = kms.Key(
                self,
                "Key",
                description=f"{stack.stack_name}: alarms",
                enable_key_rotation=True,
                removal_policy=RemovalPolicy.DESTROY,
            )
            arns = Arns(stack.partition, stack.account, stack.region)
            add_key_policy(made, allow_notifications(settings, arns), settings=settings, arns=arns)
            key = made
        self.topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        account = {"StringEquals": {"aws:SourceAccount": stack.account}}
        # AWS's pages disagree whether EventBridge can meet a condition here: its table of condition keys has
        # aws:SourceAccount, that of policies says that no topic's policy may have a condition for it. Without
        # one, who knows the topic's ARN could have a rule send mail to the address, and could read nothing.
        # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html#eb-sns-permissions
        for sid, service, conditions in (
            ("AlarmsOfThisAccount", "cloudwatch", account),
            ("RulesOfEventBridge", "events", None),
        ):
            self.topic.add_to_resource_policy(
                iam.PolicyStatement(
                    sid=sid,
                    principals=[iam.ServicePrincipal(name_principal(service))],
                    actions=["sns:Publish"],
                    resources=[self.topic.topic_arn],
                    conditions=conditions,
                )
            )
        self.topic.add_subscription(subscriptions.EmailSubscription(address))
