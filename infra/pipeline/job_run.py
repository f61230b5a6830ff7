"""StartJobRun's parameters: how spark-submit starts the job, and what the job's role may do beside the data.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html
"""

from collections.abc import Mapping
from typing import Any, Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.nag import acknowledge
from infra.pipeline.application import Application
from infra.pipeline.artifact import Artifacts
from infra.settings import Settings
from lakewriter.spec.deployment import Spark

MOST_RESTARTS: Final = 10
"""The most failures in an hour after which EMR Serverless starts a streaming job again."""

_PACKAGES: Final = "./dependencies"

# Java puts what it reads from databases and ORC into its own zone, which the session's does not change.
_UTC: Final = "-Duser.timezone=UTC"
_JAVA_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")


def job_run(settings: Settings, application: Application, role: iam.IRole, artifacts: Artifacts) -> dict[str, Any]:
    """All but the client token and the entry point's arguments, which every attempt has of its own."""
    spark = settings.deployment.spark
    archives = f"{artifacts.dependencies_uri}#dependencies,{artifacts.lake_uri}#lake"
    return {
        "Name": settings.name,
        "ApplicationId": application.application_id,
        "ExecutionRoleArn": role.role_arn,
        **_lifetime(spark),
        "JobDriver": {
            "SparkSubmit": {
                "EntryPoint": artifacts.entry_uri,
                "SparkSubmitParameters": f"--py-files {artifacts.job_uri} --archives {archives}",
            }
        },
        "ConfigurationOverrides": {
            "ApplicationConfiguration": [{"Classification": "spark-defaults", "Properties": spark_conf(spark)}]
        },
    }


def spark_conf(spark: Spark) -> dict[str, str]:
    """Sizes, counts and the path of the dependencies; ``deployment.spark.conf`` goes over them, but for the zone."""
    return {
        "spark.driver.cores": str(spark.driver.cores),
        "spark.driver.memory": spark.driver.memory,
        "spark.emr-serverless.driver.disk": spark.driver.disk,
        "spark.executor.cores": str(spark.executor.cores),
        "spark.executor.memory": spark.executor.memory,
        "spark.emr-serverless.executor.disk": spark.executor.disk,
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": "1",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": str(spark.max_executors),
        "spark.emr-serverless.driverEnv.PYTHONPATH": _PACKAGES,
        "spark.executorEnv.PYTHONPATH": _PACKAGES,
        **spark.conf,
        # Of a property that is given twice Java takes the last value.
        **{name: f"{spark.conf.get(name, '')} {_UTC}".strip() for name in _JAVA_OPTIONS},
    }


def _lifetime(spark: Spark) -> Mapping[str, Any]:
    if spark.mode == "STREAMING":
        # EMR Serverless itself starts what has failed again; 0 is no time-out.
        restarts = {"MaxFailedAttemptsPerHour": min(spark.attempts, MOST_RESTARTS)}
        return {"Mode": "STREAMING", "ExecutionTimeoutMinutes": 0, "RetryPolicy": restarts}
    return {"Mode": "BATCH", "ExecutionTimeoutMinutes": spark.timeout_minutes}


class JobPermissions(Construct):
    """What the role needs of this stack, and nothing of the data: its own artifacts, logs and key.

    A role that was brought gets none of it: then ``policy`` is its owner's to attach.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        role: iam.IRole,
        artifacts: Artifacts,
        log_group: logs.ILogGroup,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, id_)
        brought = settings.deployment.existing.job_role_arn is not None
        policy = iam.ManagedPolicy(
            self,
            "Policy",
            description=f"{Stack.of(self).stack_name}: artifacts and logs of the job",
            path=settings.deployment.role_path,
            statements=_statements(artifacts, log_group, key),
            roles=[] if brought else [role],
        )
        acknowledge(
            policy,
            "IAM5[Resource::*]",
            "EMR Serverless looks for its log group by DescribeLogGroups, which takes no less.",
        )
        self.policy = policy


def _statements(artifacts: Artifacts, log_group: logs.ILogGroup, key: kms.IKey | None) -> list[iam.PolicyStatement]:
    statements = [
        iam.PolicyStatement(sid="ReadArtifacts", actions=["s3:GetObject"], resources=list(artifacts.object_arns)),
        iam.PolicyStatement(
            sid="WriteLogs",
            actions=["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            resources=[log_group.log_group_arn],
        ),
        iam.PolicyStatement(sid="FindLogGroup", actions=["logs:DescribeLogGroups"], resources=["*"]),
    ]
    if key:
        actions = ["kms:Decrypt", "kms:GenerateDataKey"]
        statements.append(iam.PolicyStatement(sid="EncryptEventLog", actions=actions, resources=[key.key_arn]))
    return statements
