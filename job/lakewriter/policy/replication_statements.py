"""Allow S3 to copy the bucket's objects to a replica, with a role of its own.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/setting-repl-config-perm-overview.html
https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-config-for-kms-objects.html
"""

from typing import Final

from lakewriter.policy.arns import Arns, name_principal, name_services
from lakewriter.policy.statements import Document, Statement, allow, make_document
from lakewriter.spec.buckets import Replication
from lakewriter.spec.deployment import Deployment

SERVICE: Final = name_principal("s3")
_VERSIONS: Final = ("s3:GetObjectVersionForReplication", "s3:GetObjectVersionAcl", "s3:GetObjectVersionTagging")
_COPIES: Final = ("s3:ReplicateObject", "s3:ReplicateDelete", "s3:ReplicateTags")
_OWN_COPIES: Final = "s3:ObjectOwnerOverrideToBucketOwner"
"""A replica of another account needs it, which then owns the copies."""


def allow_replication(bucket: str, deployment: Deployment, replication: Replication, arns: Arns) -> list[Statement]:
    """Allow reading every version of ``bucket``, and writing copies; with keys, S3 may use them for both."""
    copies = [*_COPIES, *([_OWN_COPIES] if replication.account else [])]
    statements = [
        allow("FindReplicated", ["s3:GetReplicationConfiguration", "s3:ListBucket"], [arns.bucket(bucket)]),
        allow("ReadReplicated", _VERSIONS, [arns.objects(bucket)]),
        allow("WriteCopies", copies, [arns.objects(replication.bucket)]),
    ]
    keys = [key for key in (arns.key, *deployment.earlier_kms_key_arns) if key]
    if keys:
        through = {"StringEquals": {"kms:ViaService": name_services(["s3"], arns.region)}}
        statements.append(allow("DecryptReplicated", ["kms:Decrypt"], keys, through))
    if replication.kms_key_arn:
        there = {"StringEquals": {"kms:ViaService": name_services(["s3"], replication.kms_key_arn.split(":")[3])}}
        statements.append(allow("EncryptCopies", ["kms:Encrypt"], [replication.kms_key_arn], there))
    return statements


def make_replication_trust() -> Document:
    """Trust S3, to which nobody can pass the role but from this account."""
    trusted = {
        "Sid": "TrustReplication",
        "Effect": "Allow",
        "Principal": {"Service": SERVICE},
        "Action": "sts:AssumeRole",
    }
    return make_document([trusted])


def grant_copies(role: str, replication: Replication, arns: Arns) -> Statement:
    """Grant the role what the policy of a replica in another account has to allow."""
    copies = allow("WriteCopies", [*_COPIES, _OWN_COPIES], [arns.objects(replication.bucket)])
    return {**copies, "Principal": {"AWS": role}}
