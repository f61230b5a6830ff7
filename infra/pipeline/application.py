"""Make the EMR Serverless application of one pipeline, with limits on capacity, concurrency and idle time.

EMR Serverless updates an application only while it is created or stopped, so a change would fail during a load, and in
STREAMING always: https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_UpdateApplication.html. So an
application is never updated: its logical id is a digest of its properties, and any change makes a new application.
``infra.pipeline.old_releases`` deletes the old one when its last load has ended.
"""

import hashlib
import json
from datetime import timedelta
from typing import Any, Final

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.removal import choose_removal
from infra.settings import Settings
from lakewriter.deployable.workers import compute_capacity
from lakewriter.spec.deployment import STACK_TAG, Spark

LONGEST_NAME: Final = 64
TYPE: Final = "AWS::EMRServerless::Application"


class Application(Construct):
    """The application; its metrics are looked up by ``application_id`` and ``name`` together."""

    def __init__(
        self, scope: Construct, id_: str, *, settings: Settings, log_group: logs.ILogGroup, key: kms.IKey | None
    ) -> None:
        super().__init__(scope, id_)
        stack = Stack.of(self)
        self.name: str = settings.name[:LONGEST_NAME]
        properties = _make_properties(self.name, stack.stack_name, settings, log_group, key)
        # Not CfnApplication: what is in the digest and what is in the template must be the same.
        self.resource = CfnResource(self, "Application", type=TYPE, properties=properties)
        self.resource.override_logical_id(f"Application{compute_digest(stack.resolve(properties))}")
        # A load may be waiting for its next attempt while its application is stopped, and could be deleted.
        self.resource.apply_removal_policy(choose_removal(settings))
        self.arn: str = self.resource.get_att("Arn").to_string()
        self.application_id: str = self.resource.get_att("ApplicationId").to_string()


def compute_digest(properties: dict[str, Any]) -> str:
    """Compute a digest of properties, with letters and digits as a logical id has them."""
    return hashlib.sha256(json.dumps(properties, sort_keys=True).encode()).hexdigest()[:10].upper()


def _make_properties(
    name: str, stack_name: str, settings: Settings, log_group: logs.ILogGroup, key: kms.IKey | None
) -> dict[str, Any]:
    """Make the properties as CloudFormation spells them."""
    spark, network = settings.deployment.spark, settings.deployment.network
    most = compute_capacity(spark, settings.spec.limits)
    properties: dict[str, Any] = {
        "Name": name,
        "Type": "SPARK",
        "ReleaseLabel": spark.release,
        "Architecture": spark.architecture,
        "AutoStartConfiguration": {"Enabled": True},
        "AutoStopConfiguration": {"Enabled": True, "IdleTimeoutMinutes": _compute_idle_minutes(settings)},
        "MaximumCapacity": {"Cpu": f"{most.cores} vCPU", "Memory": f"{most.memory} GB", "Disk": f"{most.disk} GB"},
        # One run at a time: two loads of a pipeline would only wait for each other's commit. A stream never ends, so
        # the canary runs beside it.
        "SchedulerConfiguration": {
            "MaxConcurrentRuns": 2 if spark.mode == "STREAMING" else 1,
            "QueueTimeoutMinutes": spark.queue_timeout_minutes,
        },
        "MonitoringConfiguration": _make_monitoring(log_group, key),
        "Tags": [
            {"Key": tag, "Value": value}
            for tag, value in sorted({**settings.deployment.tags, STACK_TAG: stack_name}.items())
        ],
    }
    if network:
        properties["NetworkConfiguration"] = {
            "SubnetIds": list(network.subnet_ids),
            "SecurityGroupIds": list(network.security_group_ids),
        }
    return properties


def _compute_idle_minutes(settings: Settings) -> int:
    """Compute after how many idle minutes the application stops.

    An unprotected stage's old application is deleted by the deployment if it is stopped. So there it does not stop
    while a load waits between two attempts.
    """
    spark: Spark = settings.deployment.spark
    if settings.protected or not spark.pauses:
        return spark.idle_stop_minutes
    return max(spark.idle_stop_minutes, max(spark.pauses) // timedelta(minutes=1) + 1)


def _make_monitoring(log_group: logs.ILogGroup, key: kms.IKey | None) -> dict[str, Any]:
    """Send all logs to the log group; EMR Serverless keeps Spark's event log for 30 days, for its Spark UI."""
    workers = ("SPARK_DRIVER", "SPARK_EXECUTOR")
    persisted: dict[str, Any] = {"Enabled": True}
    if key:
        persisted["EncryptionKeyArn"] = key.key_arn
    return {
        "CloudWatchLoggingConfiguration": {
            "Enabled": True,
            "LogGroupName": log_group.log_group_name,
            "LogTypeMap": [{"Key": worker, "Value": ["STDOUT", "STDERR"]} for worker in workers],
        },
        "ManagedPersistenceMonitoringConfiguration": persisted,
    }
