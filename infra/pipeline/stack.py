"""Make the stack of the stateless resources: the job on EMR Serverless, its state machine, schedule and alarms."""

from aws_cdk import Annotations, CfnOutput, Environment, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.pipeline.alarms import Alarms, Watched
from infra.pipeline.application import Application
from infra.pipeline.artifact import Artifacts
from infra.pipeline.dashboard import LoadDashboard
from infra.pipeline.job_run import JobPermissions, make_canary_run, make_job_run
from infra.pipeline.load_permissions import LoadPermissions
from infra.pipeline.logs import Logs
from infra.pipeline.old_releases import OldReleases
from infra.pipeline.operators import Operators
from infra.pipeline.schedule import LoadSchedule
from infra.pipeline.silence import add_silence
from infra.pipeline.state_machine import Loads
from infra.settings import Settings
from infra.synthesizer import make_synthesizer, set_flags


class PipelineStack(Stack):
    """The loads of one stage; ``bucket``, ``key`` and ``job_role`` come from the destination's stack."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        bucket: s3.IBucket,
        key: kms.IKey | None,
        job_role: iam.IRole,
    ) -> None:
        deployment, access = settings.deployment, settings.spec.access
        super().__init__(
            scope,
            id_,
            stack_name=settings.stack_names[1],
            description=f"Lakewriter: the loads of {settings.spec.pipeline}, stage {settings.stage}",
            env=Environment(account=deployment.account, region=None if access.endpoint else access.region),
            synthesizer=make_synthesizer(settings),
        )
        set_flags(self)
        if deployment.permissions_boundary_arn:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", deployment.permissions_boundary_arn)
            iam.PermissionsBoundary.of(self).apply(boundary)
        artifacts = Artifacts(self, "Artifacts", settings=settings)
        logs = Logs(self, "Logs", settings=settings, key=key)
        application = Application(self, "Spark", settings=settings, log_group=logs.job, key=key)
        job = JobPermissions(
            self, "Job", settings=settings, role=job_role, artifacts=artifacts, log_group=logs.job, key=key
        )
        permissions = LoadPermissions(
            self, "LoadPermissions", settings=settings, application=application, job_role=job_role, key=key
        )
        silence = add_silence(self, settings=settings, log_group=logs.loads)
        run = make_job_run(settings, application, job_role, artifacts, key)
        if deployment.spark.run_lasts is not None:
            Annotations.of(self).add_warning_v2(
                "lakewriter:plain-stream",
                "deployment.spark.plain_start: the continuous run is a job run of a week at a time, which EMR "
                "Serverless does not restart. Stop it before a deployment that makes a new application, and start it "
                "afterwards: the state machine may cancel runs of the present application alone.",
            )
        loads = Loads(
            self,
            "Loads",
            settings=settings,
            runs=(run, make_canary_run(run, settings, artifacts.manifest.python)),
            permissions=permissions,
            watch=silence.arn if silence else None,
            log_group=logs.loads,
        )
        # A load needs the policy and the bucket, but the state machine refers to neither.
        loads.resource.node.add_dependency(job.policy, bucket)
        releases = OldReleases(
            self, "Releases", settings=settings, application=application, loads=loads, log_group=logs.loads
        )
        machines = [loads.resource, releases.resource, *([silence.resource] if silence else [])]
        operators = (
            Operators(self, "Operators", settings=settings, machines=machines, application=application, key=key)
            if deployment.operators
            else None
        )
        dead_letters = None
        if deployment.schedule:
            dead_letters = LoadSchedule(
                self,
                "Starts",
                settings=settings,
                schedule=deployment.schedule,
                state_machine=loads.state_machine,
                key=key,
            ).dead_letters
        watched = Watched(
            settings,
            application,
            loads.state_machine,
            handover=releases.state_machine,
            dead_letters=dead_letters,
            job_log=logs.job,
            load_log=logs.loads,
            rules=(*releases.rules, *([silence.rule] if silence else [])),
            silence=silence.state_machine if silence else None,
        )
        alarms = Alarms(self, "Alarms", watched=watched, key=key)
        LoadDashboard(self, "Overview", watched=watched, alarms=alarms.all)
        role = deployment.existing.job_role_arn
        self._add_outputs(
            StateMachineArn=(loads.state_machine.state_machine_arn, "Start a load by an execution of it"),
            ApplicationId=(application.application_id, "The EMR Serverless application"),
            JobLogGroup=(logs.job.log_group_name, "What drivers and executors print"),
            JobPolicyArn=(job.policy.managed_policy_arn, f"Attach it to {role}") if role else None,
            LoadRoleArn=(permissions.role.role_arn, "Reads the outcomes in the destination's bucket")
            if deployment.existing.bucket_account
            else None,
            OperatorRoleArn=(operators.role.role_arn, "Follows the runbook") if operators else None,
        )

    def _add_outputs(self, **outputs: tuple[str, str] | None) -> None:
        """Add outputs by name, each with its value and description; None for one that the stage does not have."""
        for name, output in outputs.items():
            if output:
                CfnOutput(self, name, value=output[0], description=output[1])
