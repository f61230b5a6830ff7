"""Have S3 copy the bucket to a replica in another region, with a role of its own."""

import json
from typing import Final

from aws_cdk import Annotations, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.destination.logical_ids import pin
from infra.destination.policies import find_wildcards
from infra.nag import acknowledge
from infra.settings import Settings
from lakewriter.policy.arns import Arns
from lakewriter.policy.replication_statements import SERVICE, allow_replication, grant_copies, make_replication_trust
from lakewriter.policy.statements import make_document
from lakewriter.spec.buckets import Replication

LOGICAL_ID: Final = "ReplicationRole"


class Replicas(Construct):
    """The ``role`` that S3 copies with, and the ``rule``: everything, deletions included."""

    def __init__(
        self, scope: Construct, id_: str, *, settings: Settings, replication: Replication, arns: Arns, shown: Arns
    ) -> None:
        super().__init__(scope, id_)
        deployment, bucket = settings.deployment, settings.spec.access.bucket
        self.role: iam.Role = iam.Role(
            self,
            LOGICAL_ID,
            description=f"{Stack.of(self).stack_name}: replication to {replication.bucket}",
            assumed_by=iam.ServicePrincipal(SERVICE),
            path=deployment.role_path,
            max_session_duration=Duration.hours(1),
        )
        resource = self.role.node.default_child
        if isinstance(resource, iam.CfnRole):
            resource.assume_role_policy_document = make_replication_trust()
        self.role.apply_removal_policy(RemovalPolicy.DESTROY)
        pin(self.role, LOGICAL_ID)
        statements = allow_replication(bucket, deployment, replication, arns)
        policy = iam.ManagedPolicy(
            self.role,
            "Permissions",
            description=f"{Stack.of(self).stack_name}: replication to {replication.bucket}",
            document=iam.PolicyDocument.from_json(make_document(statements)),
            path=deployment.role_path,
            roles=[self.role],
        )
        readable = make_document(allow_replication(bucket, deployment, replication, shown))
        for finding, why in find_wildcards(readable):
            acknowledge(policy, finding, why)
        if replication.account:
            self._warn_owner(replication, shown)
        self.rule: s3.ReplicationRule = self._make_rule(replication)

    def _make_rule(self, replication: Replication) -> s3.ReplicationRule:
        key = replication.kms_key_arn
        in_time = s3.ReplicationTimeValue.FIFTEEN_MINUTES if replication.within_15_minutes else None
        return s3.ReplicationRule(
            id="replicate",
            destination=s3.Bucket.from_bucket_attributes(
                self, "Replica", bucket_name=replication.bucket, account=replication.account
            ),
            # A load that withdraws, replaces or retires files deletes them: readers of the replica must not see them.
            delete_marker_replication=True,
            kms_key=kms.Key.from_key_arn(self, "ReplicaKey", key) if key else None,
            sse_kms_encrypted_objects=True if key else None,
            replication_time_control=in_time,
            metrics=in_time,
            access_control_transition=True if replication.account else None,
        )

    def _warn_owner(self, replication: Replication, shown: Arns) -> None:
        grants = json.dumps(grant_copies(f"<{LOGICAL_ID}.Arn>", replication, shown))
        given = replication.kms_key_arn
        key = f" The policy of {given} has to allow that role kms:Encrypt." if given else ""
        Annotations.of(self).add_warning_v2(
            "lakewriter:replica",
            f"Bucket {replication.bucket!r} is account {replication.account}'s. Have its owner add to its policy: "
            f"{grants}.{key}",
        )
