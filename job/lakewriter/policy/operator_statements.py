"""Allow an operator the commands on a pipeline's loads, and starting and stopping them; no operator writes data."""

from typing import Final

from lakewriter.policy import glue_statements as glue
from lakewriter.policy import s3_statements as storage
from lakewriter.policy.arns import Arns
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec

_MACHINE: Final = ":stateMachine:"


def allow_operator(
    spec: Spec, deployment: Deployment, arns: Arns, state_machine: str | None
) -> dict[str, list[Statement]]:
    """Allow ``status``, ``verify``, ``abandon``, ``reset``, ``rebuild``, and the loads of a state machine."""
    return {
        "S3": storage.allow_operator(spec, arns),
        "Glue": glue.allow_operator(spec, arns),
        "Kms": storage.allow_encryption(spec, deployment, arns, writes=True),
        "Loads": _allow_loads(state_machine) if state_machine else [],
    }


def _allow_loads(machine: str) -> list[Statement]:
    executions = f"{machine.replace(_MACHINE, ':execution:')}:*"
    return [
        allow("StartAndFindLoads", ["states:StartExecution", "states:ListExecutions"], [machine]),
        allow(
            "FollowAndStopLoads",
            ["states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"],
            [executions],
        ),
    ]
