"""Name what CloudFormation makes of a stage's stacks, as far as its names are known before it does.

A name that a template leaves out is made of the stack's, the logical id and random characters, or of the latter two
alone, and shortened to what the service takes:
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-name.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lakewriter.policy.arns import Arns
from lakewriter.spec.deployment import name_deployment, name_destination_stack, name_pipeline_stack

LOADS: Final = "LoadsStateMachine"
"""The beginning of the name of the state machine that runs loads."""
HANDOVER: Final = "ReleasesHandover"
"""The same of the one that follows deployments."""
SILENCE: Final = "SilenceWatch"
"""The same of the one that counts the hours without a success."""
_SHORTENED: Final = 20
"""Characters of a stack's name that a shortened name keeps."""
_ARNS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "Queues": (("sqs", "{queue}*"),),
    "Topics": (("sns", "{topic}*"),),
    "Alarms": (("cloudwatch", "alarm:{topic}*"),),
    "LogGroups": (("logs", "log-group:{topic}*"), ("logs", "log-group:/aws/vendedlogs/states/{common}-*")),
    "Rules": (("events", "rule/{short}*"),),
    "Schedules": (("scheduler", "schedule-group/{short}*"), ("scheduler", "schedule/{short}*/*")),
    "StateMachines": tuple(("states", f"stateMachine:{name}*") for name in (LOADS, HANDOVER, SILENCE)),
    # With their executions, and with the stack's name before theirs too: a boundary has no room for each by itself.
    "Machines": tuple(("states", f"*{name}*") for name in (LOADS, HANDOVER, SILENCE)),
    "Budgets": (),
    "Functions": (("lambda", "function:{short}*"),),
    "FunctionLogs": (("logs", "log-group:/aws/lambda/{short}*"),),
}
"""Service and name by kind; state machines, dashboards and secrets have no stack in their names."""


@dataclass(frozen=True)
class DeployedNames:
    """The names of one stage of a pipeline."""

    pipeline_name: str
    stage: str

    @property
    def common(self) -> str:
        """The beginning of both stacks' names."""
        return name_deployment(self.pipeline_name, self.stage)

    @property
    def destination(self) -> str:
        """The stack of bucket and roles."""
        return name_destination_stack(self.pipeline_name, self.stage)

    @property
    def pipeline(self) -> str:
        """The stack of the loads."""
        return name_pipeline_stack(self.pipeline_name, self.stage)

    @property
    def stacks(self) -> tuple[str, str]:
        """Both stacks."""
        return self.destination, self.pipeline

    @property
    def identities(self) -> list[str]:
        """Return the prefixes of the names of roles and users."""
        return [self.common[:_SHORTENED]]

    @property
    def policies(self) -> list[str]:
        """Return the prefixes of the names of managed policies; IAM takes 128 characters."""
        return [self.begin(stack, 50) for stack in self.stacks]

    def begin(self, stack: str, room: int) -> str:
        """Return the beginning of a name, if ``room`` is left for the stack's own."""
        return f"{stack}-" if len(stack) <= room else stack[:_SHORTENED]

    def stack_arn(self, stack: str, arns: Arns) -> str:
        """Return the ARN of a stack, whatever its id."""
        return arns.regional("cloudformation", f"stack/{stack}/*")

    def list_arns(self, kind: str, arns: Arns) -> list[str]:
        """List the ARNs of what is of one kind."""
        names = {
            "common": self.common,
            "short": self.common[:_SHORTENED],
            "queue": self.begin(self.pipeline, 54),
            "topic": self.begin(self.pipeline, 150),
        }
        listed = [arns.regional(service, name.format(**names)) for service, name in _ARNS[kind]]
        if kind == "Alarms":
            # A dashboard has no region, and its name is of its logical id.
            dashboards = [f"dashboard/{start}*" for start in (names["topic"], "OverviewDashboard")]
            listed += [f"arn:{arns.partition}:cloudwatch::{arns.account}:{dashboard}" for dashboard in dashboards]
        if kind == "Budgets":
            listed = [f"arn:{arns.partition}:budgets::{arns.account}:budget/{self.common}-*"]
        return listed
