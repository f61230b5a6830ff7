"""Allow an operator what the runbook calls, docs/troubleshooting.md, and commands on loads; no operator writes data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lakewriter.policy import catalog_statements as catalog
from lakewriter.policy import s3_statements as storage
from lakewriter.policy import table_bucket
from lakewriter.policy.arns import Arns, name_services
from lakewriter.policy.deployed_names import DeployedNames
from lakewriter.policy.statements import Conditions, Statement, allow
from lakewriter.spec.deployment import STACK_TAG, Deployment
from lakewriter.spec.specification import Spec

_MACHINE: Final = ":stateMachine:"
"""Max concurrent vCPUs per account: https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/endpoints-quotas.html"""
_NAMED: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "ReadLogs": ("LogGroups", ("logs:FilterLogEvents",)),
    "ReadDeadLetters": ("Queues", ("sqs:GetQueueUrl", "sqs:ReceiveMessage", "sqs:DeleteMessage")),
    "ReadSchedules": ("Schedules", ("scheduler:GetSchedule",)),
}
"""Maps a statement to what the names of its resources are of, and to its actions."""


def allow_operator(
    spec: Spec, deployment: Deployment, arns: Arns, stage: str, state_machines: Sequence[str]
) -> dict[str, list[Statement]]:
    """Allow ``status``, ``verify``, ``abandon``, ``reset``, ``rebuild``, and what the runbook calls of a stage.

    ``state_machines`` are the stage's: that of the loads, which an operator starts and stops, and those that follow
    deployments and count the hours since the last success. Without them an operator only reads.
    """
    names = DeployedNames(spec.pipeline, stage)
    key = arns.key or deployment.existing.kms_key_arn
    return {
        "S3": storage.allow_operator(spec, arns),
        "S3Tables": table_bucket.allow_operator(spec),
        "Glue": catalog.allow_operator(spec, arns),
        "Kms": [
            *storage.allow_encryption(spec, deployment, arns, writes=True),
            *catalog.allow_key(deployment, is_asked=spec.in_glue),
        ],
        "Loads": _allow_loads(state_machines) if state_machines else [],
        "Stage": [*allow_stage(arns, names), *(_allow_queue_key(key, arns) if key else [])],
    }


def _allow_loads(machines: Sequence[str]) -> list[Statement]:
    executions = [f"{machine.replace(_MACHINE, ':execution:')}:*" for machine in machines]
    return [
        allow("StartAndFindLoads", ["states:StartExecution", "states:ListExecutions"], list(machines)),
        allow(
            "FollowAndStopLoads",
            ["states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"],
            executions,
        ),
    ]


def allow_stage(arns: Arns, names: DeployedNames) -> Iterator[Statement]:
    """Allow reading what a stage's stacks leave, by their names or tag, and clearing up after a start or a run."""
    stacks = [names.stack_arn(stack, arns) for stack in names.stacks]
    yield allow("ReadOutputs", ["cloudformation:DescribeStacks"], stacks)
    for sid, (kind, actions) in _NAMED.items():
        # Of schedules, not of their groups.
        resources = [arn for arn in names.list_arns(kind, arns) if ":schedule-group/" not in arn]
        yield allow(sid, actions, resources)
    ours: Conditions = {"StringEquals": {f"aws:ResourceTag/{STACK_TAG}": names.pipeline}}
    job_runs = ["emr-serverless:ListJobRuns", "emr-serverless:GetJobRun", "emr-serverless:CancelJobRun"]
    yield allow("FollowJobRuns", job_runs, [arns.applications()], ours)
    region: Conditions = {"StringEquals": {"aws:RequestedRegion": arns.region}}
    yield allow("FindCallers", ["cloudtrail:LookupEvents"], ["*"], region)
    yield allow("ReadQuota", ["servicequotas:GetServiceQuota"], ["*"])


def _allow_queue_key(key: str, arns: Arns) -> list[Statement]:
    through_sqs = {"StringEquals": {"kms:ViaService": name_services(["sqs"], arns.region)}}
    return [allow("UseKeyThroughSqs", ["kms:Decrypt"], [key], through_sqs)]
