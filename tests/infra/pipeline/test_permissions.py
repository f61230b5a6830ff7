"""Who may do what: the job beside the data, the state machine, the schedule."""

import pytest

from tests.infra.pipeline.deployments import ALL
from tests.infra.pipeline.executions import resolved
from tests.infra.pipeline.templates import properties, statements
from tests.infra.pipeline.test_running_loads import resolve_whole
from tests.support.iam import Policies, Request, simulate

pytestmark = pytest.mark.synth


def test_what_is_allowed(plain):
    assert {sid: each["Action"] for sid, each in statements(plain).items()} == {
        "ReadArtifacts": "s3:GetObject",
        "WriteLogs": ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        "MakeLogGroup": "logs:CreateLogGroup",
        "FindLogGroup": "logs:DescribeLogGroups",
        "StartJobRuns": "emr-serverless:StartJobRun",
        "TagJobRuns": "emr-serverless:TagResource",
        "TagJobRunsOfApplications": "emr-serverless:TagResource",
        "FollowAndCancelJobRuns": ["emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"],
        "RunJobsAsTheJobRole": "iam:PassRole",
        "HearOfJobRuns": ["events:DescribeRule", "events:PutRule", "events:PutTargets"],
        "ReadOutcomes": "s3:GetObject",
        "TellOfLoads": "cloudwatch:PutMetricData",
        "DeliverLoadLogs": [
            "logs:CreateLogDelivery",
            "logs:DeleteLogDelivery",
            "logs:DescribeLogGroups",
            "logs:DescribeResourcePolicies",
            "logs:GetLogDelivery",
            "logs:ListLogDeliveries",
            "logs:PutResourcePolicy",
            "logs:UpdateLogDelivery",
        ],
        "TraceLoads": [
            "xray:GetSamplingRules",
            "xray:GetSamplingTargets",
            "xray:PutTelemetryRecords",
            "xray:PutTraceSegments",
        ],
        "FindRunningLoads": "states:ListExecutions",
        "StartWatch": "states:StartExecution",
        "WatchOn": ["states:ListExecutions", "states:StartExecution"],
        "TellOfSilence": "cloudwatch:PutMetricData",
        "ReadPresentRelease": ["states:DescribeStateMachine", "states:ListExecutions"],
        "ReadReleaseOfLoads": "states:DescribeStateMachineForExecution",
        "FindEarlierApplications": "emr-serverless:ListApplications",
        "DeleteEarlierApplications": [
            "emr-serverless:DeleteApplication",
            "emr-serverless:GetApplication",
            "emr-serverless:StopApplication",
        ],
        "StartHandovers": "states:StartExecution",
        "StartLoads": "states:StartExecution",
        "KeepUndelivered": "sqs:SendMessage",
    }


# docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/jobs-log-encryption.html: both actions for the job's role, and
# for whoever submits a run; without them the run is refused.
NOT_OTHERS = {
    "StringNotEquals": {
        "kms:ViaService": [
            f"{service}.us-east-1.amazonaws.com" for service in ("secretsmanager", "ssm", "sqs", "sns", "logs")
        ]
    }
}


def test_what_a_key_adds(plain, full):
    added = {sid: each for sid, each in statements(full).items() if sid not in statements(plain)}
    assert {sid: (each["Action"], each.get("Condition")) for sid, each in added.items()} == {
        "EncryptEventLog": (["kms:Decrypt", "kms:GenerateDataKey"], NOT_OTHERS),
        "StartEncryptedRuns": (["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"], NOT_OTHERS),
        "DecryptOutcomes": ("kms:Decrypt", {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}),
        "EncryptUndelivered": (
            ["kms:Decrypt", "kms:GenerateDataKey"],
            {"StringEquals": {"kms:ViaService": "sqs.us-east-1.amazonaws.com"}},
        ),
    }


def test_bounds_of_what_is_allowed(plain):
    found = statements(plain)
    assert found["RunJobsAsTheJobRole"]["Condition"] == {
        "StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}
    }
    assert found["TellOfLoads"]["Condition"] == {"StringEquals": {"cloudwatch:namespace": "Lakewriter"}}
    assert found["ReadOutcomes"]["Resource"] == "arn:aws:s3:::acme-lake/data/production/_lakewriter/flights/runs/*"
    answers = {"AWS::Partition": "aws", "AWS::AccountId": "123456789012"}
    folder = "arn:aws:s3:::cdk-hnb659fds-assets-123456789012-us-east-1/lakewriter-flights-prod"
    readable = [resolved(each, answers) for each in found["ReadArtifacts"]["Resource"]]
    assert readable == [f"{folder}/*.py", f"{folder}/*.zip"]
    own_tag = {"StringEquals": {"aws:ResourceTag/LakewriterStack": "lakewriter-flights-prod-pipeline"}}
    assert found["DeleteEarlierApplications"]["Condition"] == own_tag
    (loads,) = (name for name in plain["Resources"] if name.startswith("LoadsStateMachine"))
    of_loads = ("StartLoads", "FindRunningLoads", "ReadPresentRelease")
    assert [found[sid]["Resource"]["Fn::GetAtt"] for sid in of_loads] == [[loads, "Arn"]] * 3


def test_job_makes_no_log_group_but_its_own(plain):
    answers = {"AWS::Partition": "aws", "AWS::AccountId": "123456789012", "AWS::Region": "us-east-1"}
    group = "arn:aws:logs:us-east-1:123456789012:log-group:JobLogs"
    statement = resolve_whole(statements(plain)["MakeLogGroup"], answers | {"Arn": f"{group}:*"})
    assert statement["Resource"] == [f"{group}:*", group]


def test_what_a_key_of_the_artifacts_adds(plain, synthesised):
    key = "arn:aws:kms:us-east-1:123456789012:key/a"
    keyed = statements(synthesised(artifact_kms_key_arn=key))
    (added,) = (each for sid, each in keyed.items() if sid not in statements(plain) and sid != "StartLoads")
    assert (added["Sid"], added["Action"], added["Resource"]) == ("DecryptArtifacts", "kms:Decrypt", key)
    assert added["Condition"] == {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}


def test_what_a_stream_adds(plain, streaming):
    added = {sid: each["Action"] for sid, each in statements(streaming).items() if sid not in statements(plain)}
    assert added == {
        "TellCanaries": "states:DescribeExecution",
        "StopStreams": ["states:DescribeExecution", "states:StopExecution"],
        "RestartStreams": "states:StartExecution",
    }


def regional(resource):
    service = resource.split(":")[0]
    return f"arn:aws:{service}:us-east-1:123456789012:{resource.partition(':')[2]}"


TRUSTED = {
    # role: what takes it; what else of the account could be made to take it
    "LoadPermissionsRole": (
        ("states", "states:stateMachine:LoadsStateMachine1A2B3C-x1Y2"),
        [("states", "states:stateMachine:Payments"), ("states", "states:stateMachine:ReleasesHandover1A2B-x1Y2")],
    ),
    "ReleasesRole": (
        ("states", "states:stateMachine:ReleasesHandover1A2B3C-x1Y2"),
        [("states", "states:stateMachine:Payments"), ("states", "states:stateMachine:LoadsStateMachine1A2B-x1Y2")],
    ),
    "ReleasesStarts": (
        ("events", "events:rule/lakewriter-flights-p-ReleasesLoadEnded1A2B-x1Y2"),
        [("events", "events:rule/payments"), ("states", "states:stateMachine:ReleasesHandover1A2B-x1Y2")],
    ),
    "SilenceRole": (
        ("states", "states:stateMachine:SilenceWatch1A2B3C-x1Y2"),
        [("states", "states:stateMachine:Payments"), ("states", "states:stateMachine:LoadsStateMachine1A2B-x1Y2")],
    ),
    "SilenceStarts": (
        ("events", "events:rule/lakewriter-flights-p-SilenceDeployed1A2B-x1Y2"),
        [("events", "events:rule/payments"), ("scheduler", "scheduler:schedule-group/ours")],
    ),
    "StartsRole": (
        ("scheduler", "scheduler:schedule-group/ours"),
        [("scheduler", "scheduler:schedule-group/default"), ("events", "events:rule/lakewriter-flights-p-a")],
    ),
}


@pytest.mark.parametrize("role", TRUSTED)
def test_roles_trust_one_service_for_what_the_stack_makes(full, role):
    (properties_,) = (
        each["Properties"]
        for name, each in full["Resources"].items()
        if each["Type"] == "AWS::IAM::Role" and name[:-8] == role
    )
    answers = {"AWS::Partition": "aws", "AWS::AccountId": "123456789012", "AWS::Region": "us-east-1"}
    trust = resolve_whole(
        properties_["AssumeRolePolicyDocument"], answers | {"Arn": regional("scheduler:schedule-group/ours")}
    )
    own, others = TRUSTED[role]
    here, elsewhere = ({"aws:SourceAccount": account} for account in ("123456789012", "999999999999"))
    rows = [(*own, here, True), (*own, elsewhere, False), *((*other, here, False) for other in others)]
    if own[0] == "states":
        named = own[1].replace("stateMachine:", "stateMachine:lakewriter-flights-prod-pipeline-")
        rows.append(("states", named, here, True))
    arn = "arn:aws:iam::123456789012:role/lake/Role"
    requests = [
        Request("sts:AssumeRole", arn, account | {"aws:SourceArn": regional(source)}, f"{service}.amazonaws.com")
        for service, source, account, _ in rows
    ]
    assert [decision.allowed for decision in simulate(requests, Policies(resource=trust))] == [row[-1] for row in rows]
    assert properties_["Path"] == "/lake/"
    assert properties_["PermissionsBoundary"] == ALL["permissions_boundary_arn"]


def test_every_role_is_looked_at(full):
    roles = [name for name, each in full["Resources"].items() if each["Type"] == "AWS::IAM::Role"]
    assert {name[:-8] for name in roles} == set(TRUSTED)


def test_brought_role_gets_nothing_by_itself(streaming):
    (policy,) = properties(streaming, "IAM::ManagedPolicy")
    assert "Roles" not in policy
    assert "Attach it to arn:aws:iam::123456789012:role/Spark" in streaming["Outputs"]["JobPolicyArn"]["Description"]
