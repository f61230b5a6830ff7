"""Alarms, the topic by which they call, and the dashboard."""

import json

import pytest

from infra.pipeline.alarms import compute_silence_hours
from lakewriter.spec.deployment import Deployment
from tests.infra.pipeline.deployments import EMAIL
from tests.infra.pipeline.templates import has, properties

pytestmark = pytest.mark.synth

ALARMS = {
    # name: (metric or None for an expression, threshold, operator, periods, period, missing data)
    "Failed": ("ExecutionsFailed", 1, "GreaterThanOrEqualToThreshold", 1, 300, "notBreaching"),
    "TimedOut": ("ExecutionsTimedOut", 1, "GreaterThanOrEqualToThreshold", 1, 300, "notBreaching"),
    "Pending": ("PendingHours", 24, "GreaterThanOrEqualToThreshold", 1, 300, "ignore"),
    "Queued": (None, 1, "GreaterThanOrEqualToThreshold", 30, None, "notBreaching"),
    "DeadLetters": ("ApproximateNumberOfMessagesVisible", 1, "GreaterThanOrEqualToThreshold", 1, 300, "notBreaching"),
    "NoSuccess": ("LoadsDone", 1, "LessThanThreshold", 5, 3600, "breaching"),
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
    assert set(alarms(full)) == set(ALARMS) - {"NoSuccess"}
    assert set(alarms(streaming)) == set(ALARMS) - {"NoSuccess", "DeadLetters"}


SILENCES = [
    # the longest time between two starts, and an attempt of 3 hours that waits for one at most
    ({"schedule": {"cron": "30 6 * * ? *"}}, 28),
    ({"schedule": {"cron": "0 6 ? * MON-FRI *"}}, 76),
    ({"schedule": {"rate": "6 hours", "flexible_minutes": 90}}, 12),
    ({"schedule": {"cron": "0 6 ? * SUN *"}}, None),
    ({"schedule": {"cron": "0 0 1 1 ? 2030"}}, None),
    ({"schedule": {"rate": "6 hours"}, "alarms": {"no_success_hours": 48}}, 48),
    ({"schedule": {"rate": "6 hours", "enabled": False}}, None),
    ({}, None),
]


@pytest.mark.parametrize(("given", "hours"), SILENCES)
def test_how_long_without_a_success(given, hours):
    assert compute_silence_hours(Deployment.model_validate(given)) == hours


def test_whom_alarms_call(plain, full, streaming):
    assert {json.dumps(each.get("AlarmActions")) for each in alarms(plain).values()} == {"null"}
    (topic,) = (name for name, each in full["Resources"].items() if each["Type"] == "AWS::SNS::Topic")
    assert all(each["AlarmActions"] == [{"Ref": topic}] for each in alarms(full).values())
    given = ["arn:aws:sns:us-east-1:123456789012:lake"]
    assert all(each["AlarmActions"] == given for each in alarms(streaming).values())


def test_topic(full, synthesised):
    has(full, "SNS::Subscription", Protocol="email", Endpoint=EMAIL)
    (policy,) = properties(full, "SNS::TopicPolicy")
    assert [(each["Effect"], each["Principal"]) for each in policy["PolicyDocument"]["Statement"]] == [
        ("Deny", "*"),
        ("Allow", {"Service": "cloudwatch.amazonaws.com"}),
    ]
    keyless = synthesised(alarms={"email": EMAIL})
    (key,) = properties(keyless, "KMS::Key")
    assert key["EnableKeyRotation"]
    assert key["KeyPolicy"]["Statement"][1]["Principal"] == {"Service": "cloudwatch.amazonaws.com"}


def test_dashboard(plain):
    (dashboard,) = properties(plain, "CloudWatch::Dashboard")
    text = "".join(part if isinstance(part, str) else "_" for part in dashboard["DashboardBody"]["Fn::Join"][1])
    titles = [each["properties"]["title"] for each in json.loads(text)["widgets"]]
    assert titles[:2] == ["flights, stage prod", "Loads"]
    assert len(titles) == 10
