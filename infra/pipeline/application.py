"""Make the EMR Serverless application of one pipeline, with limits on capacity, concurrency and idle time."""

from typing import Final

from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.pipeline.capacity import compute_capacity
from infra.settings import Settings

LONGEST_NAME: Final = 64


class Application(Construct):
    """The application; its metrics are looked up by ``application_id`` and ``name`` together."""

    def __init__(
        self, scope: Construct, id_: str, *, settings: Settings, log_group: logs.ILogGroup, key: kms.IKey | None
    ) -> None:
        super().__init__(scope, id_)
        spark, network = settings.deployment.spark, settings.deployment.network
        most = compute_capacity(spark)
        self.name: str = settings.name[:LONGEST_NAME]
        self.resource = emr.CfnApplication(
            self,
            "Application",
            name=self.name,
            type="SPARK",
            release_label=spark.release,
            architecture=spark.architecture,
            auto_start_configuration=emr.CfnApplication.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=emr.CfnApplication.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=spark.idle_stop_minutes
            ),
            maximum_capacity=emr.CfnApplication.MaximumAllowedResourcesProperty(
                cpu=f"{most.cores} vCPU", memory=f"{most.memory} GB", disk=f"{most.disk} GB"
            ),
            # One run at a time: two loads of a pipeline would only wait for each other's commit.
            scheduler_configuration=emr.CfnApplication.SchedulerConfigurationProperty(
                max_concurrent_runs=1, queue_timeout_minutes=spark.queue_timeout_minutes
            ),
            network_configuration=emr.CfnApplication.NetworkConfigurationProperty(
                subnet_ids=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
            )
            if network
            else None,
            monitoring_configuration=_make_monitoring(log_group, key),
        )
        self.arn: str = self.resource.attr_arn
        self.application_id: str = self.resource.attr_application_id


def _make_monitoring(
    log_group: logs.ILogGroup, key: kms.IKey | None
) -> emr.CfnApplication.MonitoringConfigurationProperty:
    """Send all logs to the log group; EMR Serverless keeps Spark's event log for 30 days, for its Spark UI."""
    streams = ["STDOUT", "STDERR"]
    types = [
        emr.CfnApplication.LogTypeMapKeyValuePairProperty(key=worker, value=streams)
        for worker in ("SPARK_DRIVER", "SPARK_EXECUTOR")
    ]
    return emr.CfnApplication.MonitoringConfigurationProperty(
        cloud_watch_logging_configuration=emr.CfnApplication.CloudWatchLoggingConfigurationProperty(
            enabled=True, log_group_name=log_group.log_group_name, log_type_map=types
        ),
        managed_persistence_monitoring_configuration=emr.CfnApplication.ManagedPersistenceMonitoringConfigurationProperty(
            enabled=True, encryption_key_arn=key.key_arn if key else None
        ),
    )
