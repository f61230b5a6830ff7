"""Where the job and the state machine write what they do."""

from typing import Final

from aws_cdk import Aws, Fn, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.destination.logical_ids import pin
from infra.settings import Settings

JOB_LOGICAL_ID: Final = "JobLogs"
LOAD_LOGICAL_ID: Final = "LoadLogs"


class Logs(Construct):
    """``job`` holds what drivers and executors print, ``loads`` every step of the state machine."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings, key: kms.IKey | None) -> None:
        super().__init__(scope, id_)
        self._settings, self._key = settings, key
        self.job = self._group(JOB_LOGICAL_ID)
        # Of log groups with this beginning, any number fits into the policy by which services write to them:
        # https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html#cloudwatch-log-groups-prefix
        # The end keeps a stack that is made again apart from the log group that the first one left.
        incarnation = Fn.select(2, Fn.split("/", Aws.STACK_ID))
        self.loads = self._group(LOAD_LOGICAL_ID, f"/aws/vendedlogs/states/{settings.name}-{incarnation}")

    def _group(self, logical: str, name: str | None = None) -> logs.LogGroup:
        group = logs.LogGroup(
            self,
            logical,
            log_group_name=name,
            encryption_key=self._key,
            removal_policy=RemovalPolicy.RETAIN if self._settings.protected else RemovalPolicy.DESTROY,
        )
        pin(group, logical)
        resource = group.node.default_child
        if isinstance(resource, logs.CfnLogGroup):
            # The enumeration that LogGroup takes has names for days, which lake.yaml gives as a number.
            resource.retention_in_days = self._settings.deployment.log_retention_days
        return group
