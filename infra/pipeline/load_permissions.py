"""Allow the state machine to run the job, read its outcome, and publish metrics, logs and traces."""

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.nag import acknowledge
from infra.pipeline.application import Application
from infra.pipeline.job_run import allow_log_key
from infra.pipeline.metrics import NAMESPACE
from infra.pipeline.tokens import render_tokens
from infra.settings import Settings
from lakewriter.naming import ControlKeys
from lakewriter.policy.arns import Arns, escape


class LoadPermissions(Construct):
    """``role`` may start and cancel runs of the one application under the one job role, and read their outcomes."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        application: Application,
        job_role: iam.IRole,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, id_)
        stack, access = Stack.of(self), settings.spec.access
        self.role = iam.Role(self, "Role", assumed_by=trust_state_machines(stack), path=settings.deployment.role_path)
        self.policies: list[iam.Policy] = []
        job_runs = f"{application.arn}/jobruns/*"
        starting = [allow_log_key("StartEncryptedRuns", key, stack.region)] if key else []
        running = self._make_policy("JobRuns", [*_allow_job_runs(stack, application, job_runs, job_role), *starting])
        acknowledge(
            running,
            f"IAM5[Resource::{render_tokens(stack, job_runs)}]",
            "A job run has its id only once it has been started.",
        )
        telling = self._make_policy("Telling", [_allow_metrics(), allow_logs(), allow_traces()])
        acknowledge(
            telling,
            "IAM5[Resource::*]",
            "Metrics, traces and the delivery of logs are not resources that a policy can name; the namespace bounds "
            "the metrics.",
        )
        if access.endpoint is None:
            runs = ControlKeys(access.prefix, settings.spec.pipeline).runs
            arns = Arns(stack.partition, stack.account, stack.region)
            outcomes = arns.objects(access.bucket, f"{escape(runs)}*")
            reading = self._make_policy("Outcomes", _allow_outcomes(outcomes, key, stack))
            acknowledge(
                reading,
                f"IAM5[Resource::{render_tokens(stack, outcomes)}]",
                "Each attempt leaves its outcome under a name of its own.",
            )

    def _make_policy(self, id_: str, statements: list[iam.PolicyStatement]) -> iam.Policy:
        policy = iam.Policy(self, id_, statements=statements, roles=[self.role])
        self.policies.append(policy)
        return policy


def _allow_job_runs(
    stack: Stack, application: Application, job_runs: str, job_role: iam.IRole
) -> list[iam.PolicyStatement]:
    """Allow what https://docs.aws.amazon.com/step-functions/latest/dg/emr-serverless-iam.html lists for ``.sync``."""
    rule = stack.format_arn(
        service="events", resource="rule", resource_name="StepFunctionsGetEventsForEMRServerlessJobRule"
    )
    return [
        _allow("StartJobRuns", ["emr-serverless:StartJobRun"], application.arn),
        _allow("FollowAndCancelJobRuns", ["emr-serverless:GetJobRun", "emr-serverless:CancelJobRun"], job_runs),
        _allow(
            "RunJobsAsTheJobRole",
            ["iam:PassRole"],
            job_role.role_arn,
            {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}},
        ),
        _allow("HearOfJobRuns", ["events:PutTargets", "events:PutRule", "events:DescribeRule"], rule),
    ]


def _allow_metrics() -> iam.PolicyStatement:
    return _allow(
        "TellOfLoads", ["cloudwatch:PutMetricData"], "*", {"StringEquals": {"cloudwatch:namespace": NAMESPACE}}
    )


def trust_state_machines(stack: Stack) -> iam.IPrincipal:
    """Trust Step Functions for the state machines of this account and region."""
    machines = stack.format_arn(service="states", resource="stateMachine:*")
    return iam.ServicePrincipal("states.amazonaws.com").with_conditions(
        {"StringEquals": {"aws:SourceAccount": stack.account}, "ArnLike": {"aws:SourceArn": machines}}
    )


def allow_logs() -> iam.PolicyStatement:
    """Allow what https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html#cloudwatch-iam-policy lists."""
    actions = ["CreateLogDelivery", "DeleteLogDelivery", "GetLogDelivery", "ListLogDeliveries", "UpdateLogDelivery"]
    actions += ["DescribeLogGroups", "DescribeResourcePolicies", "PutResourcePolicy"]
    return _allow("DeliverLoadLogs", [f"logs:{action}" for action in actions], "*")


def allow_traces() -> iam.PolicyStatement:
    """Allow what https://docs.aws.amazon.com/step-functions/latest/dg/xray-iam.html lists."""
    actions = ["PutTraceSegments", "PutTelemetryRecords", "GetSamplingRules", "GetSamplingTargets"]
    return _allow("TraceLoads", [f"xray:{action}" for action in actions], "*")


def _allow_outcomes(outcomes: str, key: kms.IKey | None, stack: Stack) -> list[iam.PolicyStatement]:
    reading = [_allow("ReadOutcomes", ["s3:GetObject"], outcomes)]
    if key:
        through_s3 = {"StringEquals": {"kms:ViaService": f"s3.{stack.region}.amazonaws.com"}}
        reading.append(_allow("DecryptOutcomes", ["kms:Decrypt"], key.key_arn, through_s3))
    return reading


def _allow(
    sid: str, actions: list[str], resource: str, conditions: dict[str, dict[str, str]] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid=sid, actions=actions, resources=[resource], conditions=conditions)
