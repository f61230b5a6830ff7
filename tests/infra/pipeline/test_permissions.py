"""Who may do what: the job beside the data, the state machine, the schedule."""

import pytest

from tests.infra.pipeline.deployments import ALL
from tests.infra.pipeline.executions import resolved
from tests.infra.pipeline.templates import properties, statements

pytestmark = pytest.mark.synth


def test_what_is_allowed(plain):
    assert {sid: each["Action"] for sid, each in statements(plain).items()} == {
        "ReadArtifacts": "s3:GetObject",
        "WriteLogs": ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        "FindLogGroup": "logs:DescribeLogGroups",
        "StartJobRuns": "emr-serverless:StartJobRun",
        "StartJobRunsOfUntagged": "emr-serverless:StartJobRun",
        "TagJobRuns": "emr-serverless:TagResource",
        "TagJobRunsOfApplications": "emr-serverless:TagResource",
        "FollowAndCancelJobRuns": ["emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"],
        "FollowAndCancelUntagged": ["emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"],
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
        "StartEncryptedRuns": (["kms:Decrypt", "kms:GenerateDataKey"], NOT_OTHERS),
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


def test_what_a_stream_adds(plain, streaming):
    added = {sid: each["Action"] for sid, each in statements(streaming).items() if sid not in statements(plain)}
    assert added == {
        "TellCanaries": "states:DescribeExecution",
        "StopStreams": ["states:DescribeExecution", "states:StopExecution"],
        "RestartStreams": "states:StartExecution",
    }


def test_roles_trust_one_service_for_this_account(full):
    trusts = [each["AssumeRolePolicyDocument"]["Statement"] for each in properties(full, "IAM::Role")]
    assert sorted(each["Principal"]["Service"] for (each,) in trusts) == [
        "events.amazonaws.com",
        "scheduler.amazonaws.com",
        "states.amazonaws.com",
        "states.amazonaws.com",
    ]
    assert all(
        each["Condition"]["StringEquals"]["aws:SourceAccount"] == {"Ref": "AWS::AccountId"} for (each,) in trusts
    )
    assert {(each["Path"], each["PermissionsBoundary"]) for each in properties(full, "IAM::Role")} == {
        ("/lake/", ALL["permissions_boundary_arn"])
    }


def test_brought_role_gets_nothing_by_itself(streaming):
    (policy,) = properties(streaming, "IAM::ManagedPolicy")
    assert "Roles" not in policy
    assert "Attach it to arn:aws:iam::123456789012:role/Spark" in streaming["Outputs"]["JobPolicyArn"]["Description"]
