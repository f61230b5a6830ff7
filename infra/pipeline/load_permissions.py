"""Allow the state machine to run the job, read its outcome, and publish metrics, logs and traces."""

from collections.abc import Mapping
from typing import Any, Final

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.nag import acknowledge
from infra.pipeline.application import Application
from infra.pipeline.job_run import allow_log_keys, list_log_keys
from infra.pipeline.metrics import NAMESPACE
from infra.pipeline.tokens import render_tokens
from infra.settings import Settings
from lakewriter.naming import ControlKeys
from lakewriter.policy.arns import Arns, escape, name_principal, name_services
from lakewriter.policy.deployed_names import LOADS
from lakewriter.spec.deployment import STACK_TAG

_APPLICATIONS: Final = "/applications/*"
_JOB_RUNS: Final = "/applications/*/jobruns/*"
FOLLOWING: Final = ["emr-serverless:GetJobRun", "emr-serverless:CancelJobRun"]


class LoadPermissions(Construct):
    """``role`` may start and cancel runs of the stack's applications under the one job role, and read their outcomes.

    An execution keeps the definition that it began with, so it calls the application of its own release until it ends,
    and a deployment may have made another one by then.
    """

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
        self.role = iam.Role(
            self, "Role", assumed_by=trust_state_machine(stack, LOADS), path=settings.deployment.role_path
        )
        self.policies: list[iam.Policy] = []
        keys = list_log_keys(settings, key)
        starting = [allow_log_keys("StartEncryptedRuns", keys, stack.region, "kms:DescribeKey")] if keys else []
        followed = (
            _allow_untagged_runs(application) if settings.deployment.spark.plain_start else _allow_tagged_runs(stack)
        )
        running = self._make_policy("JobRuns", [*_allow_job_runs(stack, job_role), *followed, *starting])
        for arn in [_format_arn(stack, _APPLICATIONS), *(arn for statement in followed for arn in statement.resources)]:
            acknowledge(
                running,
                f"IAM5[Resource::{render_tokens(stack, arn)}]",
                "An execution keeps the application that it began with, and a job run has its id only once it "
                "has been started. The condition on the tag, or the application's own ARN, leaves those of this stack.",
            )
        telling = self._make_policy("Telling", [allow_metrics("TellOfLoads"), allow_logs(), allow_traces()])
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
            reading = self._make_policy("Outcomes", _allow_outcomes(outcomes, keys, stack))
            acknowledge(
                reading,
                f"IAM5[Resource::{render_tokens(stack, outcomes)}]",
                "Each attempt leaves its outcome under a name of its own.",
            )

    def _make_policy(self, id_: str, statements: list[iam.PolicyStatement]) -> iam.Policy:
        policy = iam.Policy(self, id_, statements=statements, roles=[self.role])
        self.policies.append(policy)
        return policy


def _allow_job_runs(stack: Stack, job_role: iam.IRole) -> list[iam.PolicyStatement]:
    """Allow what the page lists for ``.sync``.

    https://docs.aws.amazon.com/step-functions/latest/dg/connect-emr-serverless.html#emr-serverless-iam

    The tags are those that ``application`` and ``job_run`` set:
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/security-iam-TBAC.html
    """
    rule = stack.format_arn(
        service="events", resource="rule", resource_name="StepFunctionsGetEventsForEMRServerlessJobRule"
    )
    return [
        make_statement(
            "StartJobRuns",
            ["emr-serverless:StartJobRun"],
            _format_arn(stack, _APPLICATIONS),
            _require_stack_tag(stack, "Resource"),
        ),
        make_statement(
            "RunJobsAsTheJobRole",
            ["iam:PassRole"],
            job_role.role_arn,
            {"StringEquals": {"iam:PassedToService": name_principal("emr-serverless")}},
        ),
        make_statement("HearOfJobRuns", ["events:PutTargets", "events:PutRule", "events:DescribeRule"], rule),
    ]


def _allow_tagged_runs(stack: Stack) -> list[iam.PolicyStatement]:
    """Allow tagging runs as they are started, and following and cancelling those with the stack's tag."""
    applications, job_runs = (_format_arn(stack, resource) for resource in (_APPLICATIONS, _JOB_RUNS))
    tagged, requested = (_require_stack_tag(stack, which)["StringEquals"] for which in ("Resource", "Request"))
    tagging = ["emr-serverless:TagResource"]
    return [
        # The page names no resource for a job run that is tagged as it is started, so both are allowed.
        make_statement("TagJobRuns", tagging, job_runs, {"StringEquals": requested}),
        make_statement("TagJobRunsOfApplications", tagging, applications, {"StringEquals": {**tagged, **requested}}),
        make_statement("FollowAndCancelJobRuns", FOLLOWING, job_runs, {"StringEquals": tagged}),
    ]


def _allow_untagged_runs(application: Application) -> list[iam.PolicyStatement]:
    """Allow following and cancelling all runs of the present application, whose runs have no tags."""
    return [make_statement("FollowRunsOfApplication", FOLLOWING, f"{application.arn}/jobruns/*")]


def _require_stack_tag(stack: Stack, which: str) -> dict[str, dict[str, str]]:
    return {"StringEquals": {f"aws:{which}Tag/{STACK_TAG}": stack.stack_name}}


def _format_arn(stack: Stack, resource: str) -> str:
    """Format the ARN of a resource of EMR Serverless, whose path begins with a slash."""
    return stack.format_arn(service="emr-serverless", resource=resource, arn_format=ArnFormat.NO_RESOURCE_NAME)


def allow_metrics(sid: str) -> iam.PolicyStatement:
    """Allow publishing metrics in the one namespace."""
    return make_statement(sid, ["cloudwatch:PutMetricData"], "*", {"StringEquals": {"cloudwatch:namespace": NAMESPACE}})


def trust_state_machine(stack: Stack, construct: str) -> iam.IPrincipal:
    """Trust Step Functions for this account's state machines whose names begin as the stacks' do.

    Their ARNs are not known yet: Step Functions takes the role while it makes the state machine.
    https://docs.aws.amazon.com/step-functions/latest/dg/procedure-create-iam-role.html#prevent-cross-service-confused-deputy
    """
    # With the stack's name before them too, as CloudFormation names most resources: a page for either is lacking.
    starts = (construct, f"{stack.stack_name}-{construct}")
    machines = [stack.format_arn(service="states", resource=f"stateMachine:{start}*") for start in starts]
    return iam.ServicePrincipal(name_principal("states")).with_conditions(
        {"StringEquals": {"aws:SourceAccount": stack.account}, "ArnLike": {"aws:SourceArn": machines}}
    )


def allow_logs() -> iam.PolicyStatement:
    """Allow what https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html#cloudwatch-iam-policy lists."""
    actions = ["CreateLogDelivery", "DeleteLogDelivery", "GetLogDelivery", "ListLogDeliveries", "UpdateLogDelivery"]
    actions += ["DescribeLogGroups", "DescribeResourcePolicies", "PutResourcePolicy"]
    return make_statement("DeliverLoadLogs", [f"logs:{action}" for action in actions], "*")


def allow_traces() -> iam.PolicyStatement:
    """Allow what https://docs.aws.amazon.com/step-functions/latest/dg/xray-iam.html lists."""
    actions = ["PutTraceSegments", "PutTelemetryRecords", "GetSamplingRules", "GetSamplingTargets"]
    return make_statement("TraceLoads", [f"xray:{action}" for action in actions], "*")


def _allow_outcomes(outcomes: str, keys: list[str], stack: Stack) -> list[iam.PolicyStatement]:
    reading = [make_statement("ReadOutcomes", ["s3:GetObject"], outcomes)]
    through_s3 = {"StringEquals": {"kms:ViaService": name_services(["s3"], stack.region)}}
    if keys:
        reading.append(
            iam.PolicyStatement(sid="DecryptOutcomes", actions=["kms:Decrypt"], resources=keys, conditions=through_s3)
        )
    return reading


def make_statement(
    sid: str, actions: list[str], resource: str, conditions: Mapping[str, Mapping[str, Any]] | None = None
) -> iam.PolicyStatement:
    """Make the statement that allows actions on one resource."""
    return iam.PolicyStatement(sid=sid, actions=actions, resources=[resource], conditions=conditions)
