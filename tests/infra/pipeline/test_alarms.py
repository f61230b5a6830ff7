"""Alarms, the topic by which they call, and the dashboard."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match, Template

from infra.destination.key import allow_services
from infra.pipeline.silence import compute_silence_hours, compute_tick_hours
from infra.pipeline.stream_alarms import compute_late_minutes
from infra.settings import read_defaults
from lakewriter.policy.arns import Arns
from lakewriter.policy.statements import make_document
from lakewriter.run.continuous_metrics import write_embedded
from lakewriter.spec.deployment import Deployment
from tests.infra.pipeline.conftest import add_stack
from tests.infra.pipeline.deployments import ALL, EMAIL
from tests.infra.pipeline.executions import resolved
from tests.infra.pipeline.templates import has, loads, properties
from tests.infra.pipeline.test_running_loads import resolve_whole
from tests.run.test_continuous_metrics import METRICS
from tests.support.iam import Policies, Request, simulate

pytestmark = pytest.mark.synth

ALARMS = {
    # name: (metric or None for an expression, threshold, operator, periods, period, missing data)
    "Failed": ("ExecutionsFailed", 1, "GreaterThanOrEqualToThreshold", 1, 300, "notBreaching"),
    "TimedOut": ("ExecutionsTimedOut", 1, "GreaterThanOrEqualToThreshold", 1, 300, "notBreaching"),
    "Expectations": ("ExpectationsFailed", 1, "GreaterThanOrEqualToThreshold", 1, 300, "notBreaching"),
    "Pending": ("PendingHours", 24, "GreaterThanOrEqualToThreshold", 1, 300, "ignore"),
    "Handover": (None, 1, "GreaterThanOrEqualToThreshold", 1, None, "notBreaching"),
    "Queued": (None, 1, "GreaterThanOrEqualToThreshold", 30, None, "notBreaching"),
    "DeadLetters": ("ApproximateNumberOfMessagesVisible", 1, "GreaterThanOrEqualToThreshold", 1, 300, "notBreaching"),
    "NoSuccess": ("HoursWithoutSuccess", 5, "GreaterThanOrEqualToThreshold", 1, 7200, "ignore"),
    "Watch": (None, 1, "GreaterThanOrEqualToThreshold", 1, None, "notBreaching"),
    "Rules": (None, 1, "GreaterThanOrEqualToThreshold", 1, None, "notBreaching"),
}
SHOWN = ("MetricName", "Threshold", "ComparisonOperator", "EvaluationPeriods", "Period", "TreatMissingData")


def alarms(template):
    """By id, without the hash that CDK adds to it."""
    found = {name: each for name, each in template["Resources"].items() if each["Type"] == "AWS::CloudWatch::Alarm"}
    return {name.removeprefix("Alarms")[:-8]: each["Properties"] for name, each in found.items()}


def test_alarms(plain):
    assert {name: tuple(each.get(key) for key in SHOWN) for name, each in alarms(plain).items()} == ALARMS
    waiting = alarms(plain)["Queued"]["Metrics"]
    assert [each.get("Expression") or each["MetricStat"]["Metric"]["MetricName"] for each in waiting] == [
        "SUM(METRICS())",
        "SubmittedJobs",
        "QueuedJobs",
        "PendingJobs",
        "ScheduledJobs",
    ]


def test_alarms_that_have_nothing_to_watch(full, streaming):
    # its schedule is off, and its alarm asked for
    assert set(alarms(full)) == set(ALARMS)
    assert set(alarms(streaming)) - set(STREAM_ALARMS) == set(ALARMS) - {"NoSuccess", "Watch", "DeadLetters"}


STREAM_ALARMS = {
    # name: (metric, threshold, operator, periods, period, missing data), the statistic; the interval is five minutes
    "Stale": (("FreshnessSeconds", 900, "GreaterThanOrEqualToThreshold", 3, 60, "notBreaching"), "Maximum"),
    "Lagging": (("LagSeconds", 900, "GreaterThanOrEqualToThreshold", 1, 60, "notBreaching"), "Maximum"),
    "TableFailed": (("FailedTables", 1, "GreaterThanOrEqualToThreshold", 1, 60, "notBreaching"), "Maximum"),
    "Silent": (("FreshnessSeconds", 1, "LessThanThreshold", 15, 60, "breaching"), "SampleCount"),
}


def test_alarms_of_a_continuous_run(streaming):
    """Its metrics have the dimensions that the job writes into its log, for all of its tables."""
    found = {name: each for name, each in alarms(streaming).items() if name in STREAM_ALARMS}
    shown = {name: (tuple(each.get(key) for key in SHOWN), each["Statistic"]) for name, each in found.items()}
    assert shown == STREAM_ALARMS
    line = json.loads(write_embedded(METRICS, "dev"))
    for each in found.values():
        assert each["Namespace"] == line["_aws"]["CloudWatchMetrics"][0]["Namespace"]
        assert each["MetricName"] in line
        names = [dimension["Name"] for dimension in each["Dimensions"]]
        assert names in line["_aws"]["CloudWatchMetrics"][0]["Dimensions"]
        assert {dimension["Name"]: dimension["Value"] for dimension in each["Dimensions"]}["Stage"] == line["Stage"]


def test_the_job_is_told_its_stage(streaming, plain):
    for template, stage in ((streaming, "dev"), (plain, None)):
        machine = loads(template)
        text = json.dumps(machine["DefinitionString"])
        assert ("driverEnv.LAKEWRITER_STAGE" in text) == (stage is not None)


LATE = [
    # alarms, the interval in seconds, minutes
    ({}, 1, 15), ({}, 300, 15), ({}, 301, 16), ({}, 3600, 180), ({"late_minutes": 5}, 3600, 5),
]  # fmt: skip


@pytest.mark.parametrize(("given", "interval", "minutes"), LATE)
def test_how_late_a_table_may_be(given, interval, minutes):
    assert compute_late_minutes(Deployment.model_validate({"alarms": given}), interval) == minutes


SILENCES = [
    # the longest time between two starts, and an attempt of 3 hours that waits for one at most
    ({"schedule": {"cron": "30 6 * * ? *"}}, 28),
    ({"schedule": {"cron": "0 6 ? * MON-FRI *"}}, 76),
    ({"schedule": {"rate": "6 hours", "flexible_minutes": 90}}, 12),
    ({"schedule": {"cron": "0 6 ? * SUN *"}}, 172),
    ({"schedule": {"cron": "0 6 1 * ? *"}}, 748),
    ({"schedule": {"cron": "0 6 1 1/2 ? *"}}, 1492),
    ({"schedule": {"cron": "0 6 1 1 ? *"}}, None),
    ({"schedule": {"cron": "0 0 1 1 ? 2030"}}, None),
    ({"schedule": {"rate": "6 hours"}, "alarms": {"no_success_hours": 48}}, 48),
    ({"schedule": {"rate": "6 hours", "enabled": False}}, None),
    ({"schedule": {"rate": "6 hours", "enabled": False}, "alarms": {"no_success_hours": 2000}}, 2000),
    ({"alarms": {"no_success_hours": 2000}}, 2000),
    ({"spark": {"mode": "STREAMING"}, "alarms": {"no_success_hours": 48}}, None),
    ({}, None),
]
UNEXPECTED = [
    ({}, "since it has no schedule"),
    ({"schedule": {"rate": "6 hours", "enabled": False}}, "since its schedule is off"),
    ({"schedule": {"cron": "0 6 1 1 ? *"}}, "starts none within 2000 hours"),
    ({"schedule": {"rate": "6 hours"}}, None),
    ({"alarms": {"no_success_hours": 900}}, None),
    ({"spark": {"mode": "STREAMING"}}, None),
]


@pytest.mark.parametrize(("given", "why"), UNEXPECTED)
def test_warning_that_nobody_is_called_where_loads_stop(settings_of, given, why):
    stack = add_stack(cdk.App(context=read_defaults(), analytics_reporting=False), settings_of(**given))
    said = [each.entry.data for each in Annotations.from_stack(stack).find_warning("*", Match.any_value())]
    found = [each for each in said if "stop succeeding" in each]
    assert [why in each for each in found] == ([True] if why else [])


def test_address_has_to_confirm(settings_of):
    stack = add_stack(cdk.App(context=read_defaults()), settings_of(alarms={"email": EMAIL}))
    assert len(Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(f"{EMAIL} gets a mail"))) == 1


@pytest.mark.parametrize(("hours", "tick"), [(1, 1), (28, 1), (48, 2), (76, 3), (144, 6), (172, 6), (2000, 6)])
def test_how_often_the_hours_are_published(hours, tick):
    assert compute_tick_hours(hours) == tick


@pytest.mark.parametrize(("given", "hours"), SILENCES)
def test_how_long_without_a_success(given, hours):
    assert compute_silence_hours(Deployment.model_validate(given)) == hours


def test_whom_alarms_call(plain, full, streaming):
    assert {json.dumps(each.get("AlarmActions")) for each in alarms(plain).values()} == {"null"}
    (topic,) = (name for name, each in full["Resources"].items() if each["Type"] == "AWS::SNS::Topic")
    assert all(each["AlarmActions"] == [{"Ref": topic}] for each in alarms(full).values())
    given = ["arn:aws:sns:us-east-1:123456789012:lake"]
    assert all(each["AlarmActions"] == given for each in alarms(streaming).values())


@pytest.mark.parametrize(("alarms", "count"), [({}, 1), ({"email": EMAIL}, 0)])
def test_warning_that_nobody_will_be_called(settings_of, alarms, count):
    app = cdk.App(context=read_defaults(), analytics_reporting=False)
    stack = add_stack(app, settings_of(alarms=alarms))
    found = Annotations.from_stack(stack).find_warning(
        "*", Match.string_like_regexp("Nobody will be called when a load fails")
    )
    assert len(found) == count


def test_owner_of_a_topic_is_told_whom_to_admit(settings_of):
    stack = add_stack(cdk.App(context=read_defaults()), settings_of(alarms={"topic_arn": TOPIC}))
    warned = Annotations.from_stack(stack).find_warning(
        "*", Match.string_like_regexp("let cloudwatch.amazonaws.com publish")
    )
    assert len(warned) == 1


TOPIC = "arn:aws:sns:us-east-1:123456789012:lake"
BUDGETS = [
    # whom; how AWS is told; the beginning of the address' SHA-256
    ({"email": EMAIL}, {"SubscriptionType": "EMAIL", "Address": EMAIL}, "d7ab8d2b"),
    ({"topic_arn": TOPIC}, {"SubscriptionType": "SNS", "Address": TOPIC}, "e346e997"),
]


@pytest.mark.parametrize(("whom", "subscriber", "digest"), BUDGETS)
def test_budget_of_the_stages_own_costs(settings_of, whom, subscriber, digest):
    stack = add_stack(cdk.App(context=read_defaults()), settings_of(alarms=whom | {"monthly_budget_usd": 200}))
    [made] = properties(Template.from_stack(stack).to_json(), "Budgets::Budget")
    assert made["Budget"] == {
        "BudgetLimit": {"Amount": 200, "Unit": "USD"},
        "BudgetName": f"lakewriter-flights-prod-{digest}",
        "BudgetType": "COST",
        "FilterExpression": {
            "Tags": {
                "Key": "LakewriterStack",
                "Values": ["lakewriter-flights-prod-destination", "lakewriter-flights-prod-pipeline"],
            }
        },
        "Metrics": ["UnblendedCost"],
        "TimeUnit": "MONTHLY",
    }
    told = {"ComparisonOperator": "GREATER_THAN"}
    assert made["NotificationsWithSubscribers"] == [
        {"Notification": told | {"NotificationType": of, "Threshold": percent}, "Subscribers": [subscriber]}
        for of, percent in (("ACTUAL", 80), ("FORECASTED", 100))
    ]
    warned = Annotations.from_stack(stack).find_warning(
        "*", Match.string_like_regexp("cloudwatch.amazonaws.com and budgets.amazonaws.com publish")
    )
    assert len(warned) == ("topic_arn" in whom)


def test_alarms_say_where_to_look_and_what_to_do(plain):
    answers = {"Arn": "LOADS", "JobLogs": "JOB-LOG", "LoadLogs": "LOAD-LOG"}
    for name, alarm in alarms(plain).items():
        text = resolved(alarm["AlarmDescription"], answers)
        assert text.startswith("lakewriter-flights-prod-pipeline: ")
        assert "Executions: LOADS. Log groups: JOB-LOG (job), LOAD-LOG (steps)." in text
        assert text.endswith(f" What to do: docs/troubleshooting.md#{name.lower()}.")
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
        assert len(text) + 300 < 1024


def test_message_that_names_a_failed_execution(full, plain):
    [rule] = [each for each in properties(full, "Events::Rule") if "InputTransformer" in each["Targets"][0]]
    assert rule["EventPattern"]["detail"]["status"] == ["FAILED", "TIMED_OUT"]
    given = rule["Targets"][0]["InputTransformer"]
    text = resolved(given["InputTemplate"], {"Arn": "LOADS"})
    # The template of a text is a text in quotes, and has no others.
    assert json.loads(text).startswith(
        "lakewriter-flights-prod-pipeline: load <name> ended as <status>: <error>. Execution: <execution>."
    )
    assert given["InputPathsMap"]["error"] == "$.detail.error"
    assert not any("InputTransformer" in each["Targets"][0] for each in properties(plain, "Events::Rule"))


MADE = "arn:aws:sns:us-east-1:123456789012:lakewriter-flights-prod-pipeline-AlarmsEmailTopic0A1B2C3D-x1Y2z3"
CONTEXT = "kms:EncryptionContext:aws:sns:topicArn"
STAND_IN = "aws:SourceArn"
"""For CONTEXT, whose kind of key the simulator does not know."""
FOR_TOPIC = {CONTEXT: MADE}
OTHER_STAGES = {CONTEXT: MADE.replace("prod", "dev")}
HERE, ELSEWHERE = ({"aws:SourceAccount": account} for account in ("123456789012", "999999999999"))
CALLS = [
    # the service, the action, the context of its request, whether it is allowed
    ("cloudwatch", "sns:Publish", HERE, True),
    ("cloudwatch", "sns:Publish", ELSEWHERE, False),
    ("cloudwatch", "kms:GenerateDataKey", HERE | FOR_TOPIC, True),
    ("cloudwatch", "kms:Decrypt", ELSEWHERE | FOR_TOPIC, False),
    # EventBridge gives neither account nor rule where it uses the key of a topic
    ("events", "sns:Publish", {}, True),
    ("events", "kms:GenerateDataKey", FOR_TOPIC, True),
    ("events", "kms:Decrypt", FOR_TOPIC, True),
    ("events", "kms:Decrypt", OTHER_STAGES, False),
    ("events", "kms:Decrypt", {}, False),
    ("lambda", "sns:Publish", HERE, False),
]


def decide(topic_policy, key_policy):
    answers = {"AWS::Partition": "aws", "AWS::AccountId": "123456789012", "AWS::Region": "us-east-1"}
    answers[topic_policy["Statement"][0]["Resource"]["Ref"]] = MADE
    policies = {
        action: json.loads(json.dumps(resolve_whole(policy, answers)).replace(CONTEXT, STAND_IN))
        for action, policy in (("sns", topic_policy), ("kms", key_policy))
    }
    rows = [(action.split(":")[0], service, action, context) for service, action, context, _ in CALLS]
    requests = [
        Request(
            action,
            MADE if kind == "sns" else KEY,
            {STAND_IN if name == CONTEXT else name: value for name, value in context.items()},
            f"{service}.amazonaws.com",
        )
        for kind, service, action, context in rows
    ]
    return [decision.allowed for decision in simulate(requests, [Policies({}, policies[kind]) for kind, *_ in rows])]


KEY = "arn:aws:kms:us-east-1:123456789012:key/a"


def test_topic(full, settings_of, synthesised):
    """Under a key of its own, or under the bucket's; the same statements are printed for a key that is brought."""
    has(full, "SNS::Subscription", Protocol="email", Endpoint=EMAIL)
    keyless = synthesised(alarms={"email": EMAIL})
    (key,) = properties(keyless, "KMS::Key")
    assert key["EnableKeyRotation"]
    services = allow_services(settings_of(**ALL), Arns("aws", "123456789012", "us-east-1"))
    for template, policy in ((keyless, key["KeyPolicy"]), (full, make_document(services))):
        (topic,) = properties(template, "SNS::TopicPolicy")
        statements = topic["PolicyDocument"]["Statement"]
        assert statements[0]["Effect"] == "Deny"
        rules = {each["Sid"]: each.get("Condition") for each in statements[1:]}
        assert rules == {
            "AlarmsOfThisAccount": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
            "RulesOfEventBridge": None,
        }
        assert decide(topic["PolicyDocument"], policy) == [allowed for *_, allowed in CALLS]


def test_events_that_are_not_delivered(full, plain):
    """Of the rule that mails, where there is one, and of those that start the handover."""
    for template, count in ((full, 4), (plain, 3)):
        metrics = [
            each["MetricStat"]["Metric"] for each in alarms(template)["Rules"]["Metrics"] if "MetricStat" in each
        ]
        rules = {name for name, each in template["Resources"].items() if each["Type"] == "AWS::Events::Rule"}
        assert len(rules) == count
        assert {each["MetricName"] for each in metrics} == {"FailedInvocations"}
        assert {each["Dimensions"][0]["Value"]["Ref"] for each in metrics} == rules


def test_dashboard(plain):
    (dashboard,) = properties(plain, "CloudWatch::Dashboard")
    text = "".join(part if isinstance(part, str) else "_" for part in dashboard["DashboardBody"]["Fn::Join"][1])
    titles = [each["properties"]["title"] for each in json.loads(text)["widgets"]]
    assert titles[:2] == ["flights, stage prod", "Loads"]
    assert len(titles) == 10
