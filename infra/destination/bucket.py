"""Make the bucket of the tables, and the bucket for its access logs."""

import json
from typing import Final

from aws_cdk import Annotations, CfnResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.destination.logical_ids import pin
from infra.destination.replication import Replicas
from infra.nag import acknowledge
from infra.removal import choose_removal
from infra.settings import Settings
from lakewriter.policy.arns import Arns, name_principal

LOGICAL_ID: Final = "Bucket"
LOGS_LOGICAL_ID: Final = "AccessLogs"
NONCURRENT_DAYS: Final = 30
"""A replaced or deleted object can be restored for so many days."""


class LakeBucket(Construct):
    """The bucket, new or from ``deployment.existing``; a warning shows the owner of an existing one what it needs."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        arns: Arns,
        shown: Arns,
        key: kms.IKey | None,
        hosted: bool = False,
    ) -> None:
        """``hosted`` says that another stack of the app makes the bucket."""
        super().__init__(scope, id_)
        self._settings, self._arns, self._shown = settings, arns, shown
        access = settings.spec.access
        self._made: list[s3.Bucket] = []
        self.made: bool = not (hosted or settings.deployment.existing.bucket or access.endpoint)
        self.bucket: s3.IBucket = (
            self._make_bucket(key, self._make_logs())
            if self.made
            else s3.Bucket.from_bucket_name(self, "Brought", access.bucket)
        )

    def retain_policies(self) -> None:
        """Retain the policies of retained buckets: without them the buckets would admit what they deny now."""
        for bucket in self._made:
            if bucket.policy is not None:
                pin(bucket.policy, f"{bucket.node.id}Policy")
                bucket.policy.apply_removal_policy(self._choose_removal())

    def _make_bucket(self, key: kms.IKey | None, logs: s3.IBucket | None) -> s3.Bucket:
        spec, deployment = self._settings.spec, self._settings.deployment
        replicas = self._make_replicas()
        wanted = deployment.versioning
        versioned = replicas is not None or not spec.iceberg if wanted is None else wanted
        bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=spec.access.bucket,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,
            versioned=versioned,
            lifecycle_rules=_make_lifecycle_rules(deployment.abort_incomplete_uploads_days, versioned=versioned),
            replication_role=replicas.role if replicas else None,
            replication_rules=[replicas.rule] if replicas else None,
            server_access_logs_bucket=logs,
            server_access_logs_prefix=f"{spec.access.bucket}/" if logs else None,
            removal_policy=self._choose_removal(),
            auto_delete_objects=self._is_emptied(),
        )
        pin(bucket, LOGICAL_ID)
        if self._is_emptied():
            self._silence_cfn_lint()
        self._made.append(bucket)
        if not deployment.access_logs:
            acknowledge(bucket, "S1", "deployment.access_logs is off in lake.yaml.")
        return bucket

    def _make_replicas(self) -> Replicas | None:
        replication = self._settings.deployment.replication
        if replication is None:
            return None
        return Replicas(
            self,
            "Replication",
            settings=self._settings,
            replication=replication,
            arns=self._arns,
            shown=self._shown,
        )

    def _make_logs(self) -> s3.IBucket | None:
        """Make the log bucket with SSE-S3 and a bucket policy: log delivery supports neither KMS keys nor ACLs.

        https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-server-access-logging.html
        """
        deployment = self._settings.deployment
        if not deployment.access_logs:
            return None
        if deployment.existing.log_bucket:
            self._warn_owner_of_logs(deployment.existing.log_bucket)
            return s3.Bucket.from_bucket_name(self, "BroughtLogs", deployment.existing.log_bucket)
        logs = s3.Bucket(
            self,
            "AccessLogs",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            versioned=deployment.access_log_versions,
            lifecycle_rules=_expire_logs(deployment.log_retention_days, versioned=deployment.access_log_versions),
            removal_policy=self._choose_removal(),
            auto_delete_objects=self._is_emptied(),
        )
        pin(logs, LOGS_LOGICAL_ID)
        self._made.append(logs)
        return logs

    def _warn_owner_of_logs(self, name: str) -> None:
        """Replace CDK's own warning by one that prints the missing statement."""
        shown, bucket = self._shown, self._settings.spec.access.bucket
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": name_principal("logging.s3")},
            "Action": "s3:PutObject",
            "Resource": shown.objects(name, f"{bucket}/*"),
            "Condition": {
                "ArnLike": {"aws:SourceArn": shown.bucket(bucket)},
                "StringEquals": {"aws:SourceAccount": shown.account},
            },
        }
        Annotations.of(self).acknowledge_warning("@aws-cdk/aws-s3:accessLogsPolicyNotAdded")
        Annotations.of(self).add_warning_v2(
            "lakewriter:log-bucket",
            f"Bucket {name!r} takes the access logs. Have its owner add to its policy: {json.dumps(statement)}",
        )

    def _silence_cfn_lint(self) -> None:
        """Ignore cfn-lint's W3005 for the function that empties buckets: its extra dependency is written by CDK."""
        provider = Stack.of(self).node.find_child("Custom::S3AutoDeleteObjectsCustomResourceProvider")
        handler = provider.node.find_child("Handler")
        if isinstance(handler, CfnResource):
            handler.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3005"]}})

    def _choose_removal(self) -> RemovalPolicy:
        return choose_removal(self._settings)

    def _is_emptied(self) -> bool:
        return self._settings.deployment.destroy_data and not self._settings.protected


def _make_lifecycle_rules(abort_days: int, *, versioned: bool) -> list[s3.LifecycleRule]:
    """Make the lifecycle rules; no rule expires current objects, which only loads may delete."""
    rules = [
        s3.LifecycleRule(
            id="abort-incomplete-uploads", abort_incomplete_multipart_upload_after=Duration.days(abort_days)
        )
    ]
    if versioned:
        rules.append(
            s3.LifecycleRule(
                id="expire-noncurrent-versions",
                noncurrent_version_expiration=Duration.days(NONCURRENT_DAYS),
                expired_object_delete_marker=True,
            )
        )
    return rules


def _expire_logs(days: int, *, versioned: bool) -> list[s3.LifecycleRule]:
    """Expire logs; a marker of a deletion that hides no version any more needs a rule of its own, as S3 asks for.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html
    """
    age = Duration.days(days)
    rules = [
        s3.LifecycleRule(id="expire-logs", expiration=age, noncurrent_version_expiration=age if versioned else None)
    ]
    if versioned:
        rules.append(s3.LifecycleRule(id="expire-markers", expired_object_delete_marker=True))
    return rules
