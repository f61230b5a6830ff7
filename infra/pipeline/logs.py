"""Make the log groups of the job and of the state machine."""

from typing import Final

from aws_cdk import Aws, Fn
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.destination.logical_ids import pin
from infra.removal import choose_removal
from infra.settings import Settings

JOB_LOGICAL_ID: Final = "JobLogs"
LOAD_LOGICAL_ID: Final = "LoadLogs"


class Logs(Construct):
    """``job`` holds what drivers and executors print, ``loads`` every step of the state machine."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings, key: kms.IKey | None) -> None:
        super().__init__(scope, id_)
        self._settings, self._key = settings, key
        self.job = self._make_group(JOB_LOGICAL_ID)
        # This prefix keeps log groups out of the resource policy of CloudWatch Logs, whose size is limited:
        # https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html#cloudwatch-log-groups-prefix
        # The suffix differs from that of a log group which an earlier stack of this name has retained.
        incarnation = Fn.select(2, Fn.split("/", Aws.STACK_ID))
        self.loads = self._make_group(LOAD_LOGICAL_ID, f"/aws/vendedlogs/states/{settings.name}-{incarnation}")

    def _make_group(self, logical: str, name: str | None = None) -> logs.LogGroup:
        group = logs.LogGroup(
            self,
            logical,
            log_group_name=name,
            encryption_key=self._key,
            removal_policy=choose_removal(self._settings),
        )
        pin(group, logical)
        resource = group.node.default_child
        if isinstance(resource, logs.CfnLogGroup):
            # LogGroup takes an enumeration instead of the number of days in lake.yaml.
            resource.retention_in_days = self._settings.deployment.log_retention_days
        return group
