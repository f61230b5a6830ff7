"""Make the customer-managed KMS key of the bucket and of the pipeline's logs."""

import json
from typing import Final

from aws_cdk import Annotations, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.destination.logical_ids import pin
from infra.removal import choose_removal
from infra.settings import Settings
from lakewriter.policy.arns import Arns, name_principal
from lakewriter.policy.deployed_names import DeployedNames
from lakewriter.policy.deployer_statements import allow_key_administration
from lakewriter.policy.statements import Conditions, Statement

LOGICAL_ID: Final = "Key"


def has_customer_key(settings: Settings) -> bool:
    """Return True if the bucket is encrypted with a customer-managed key, which has a policy."""
    deployment = settings.deployment
    return deployment.encryption == "SSE-KMS" or deployment.existing.kms_key_arn is not None


class Key(Construct):
    """The key, new or from ``deployment.existing``; a warning shows the owner of an existing one what it needs."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings, arns: Arns, shown: Arns) -> None:
        super().__init__(scope, id_)
        brought = settings.deployment.existing.kms_key_arn
        self.key: kms.IKey
        if brought:
            self.key = kms.Key.from_key_arn(self, "Brought", brought)
            Annotations.of(self).add_warning_v2(
                "lakewriter:key-policy",
                f"{brought} is used as it is. Its policy has to allow the account's IAM policies, and: "
                f"{json.dumps(allow_services(settings, shown))}",
            )
            return
        key = kms.Key(
            self,
            "Key",
            description=f"{Stack.of(self).stack_name}: data and logs",
            enable_key_rotation=True,
            removal_policy=choose_removal(settings),
        )
        pin(key, LOGICAL_ID)
        add_key_policy(key, allow_services(settings, arns), settings=settings, arns=arns)
        self.key = key


def add_key_policy(key: kms.Key, statements: list[Statement], *, settings: Settings, arns: Arns) -> None:
    """Add statements to the policy of a key of the stacks, and let a bound deployer administer it."""
    if settings.deployment.permissions_boundary_arn:
        statements = [*statements, allow_key_administration(settings.deployment, arns)]
    for statement in statements:
        key.add_to_resource_policy(iam.PolicyStatement.from_json(statement))


def allow_services(settings: Settings, arns: Arns) -> list[Statement]:
    """Allow AWS services to use the key for this account; its roles have permissions of their own."""
    account = {"StringEquals": {"aws:SourceAccount": arns.account}}
    applications = {"ArnLike": {"aws:SourceArn": arns.applications()}}
    log_groups = f"arn:{arns.partition}:logs:{arns.region}:{arns.account}:log-group:*"
    statements = [
        _allow(
            "EncryptLogGroups",
            name_principal("logs", arns.region),
            ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
            {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": log_groups}},
        ),
        _allow(
            "EncryptJobLogs",
            name_principal("emr-serverless"),
            ["kms:Decrypt", "kms:GenerateDataKey"],
            {**account, **applications},
        ),
    ]
    return [*statements, *_allow_upkeep_of_tables(settings), *allow_notifications(settings, arns)]


def _allow_upkeep_of_tables(settings: Settings) -> list[Statement]:
    """Allow S3 Tables to compact, to expire and to clear up in the table buckets of the stage and its guests: without
    it no table under the key can be made.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-kms-permissions.html
    """
    buckets = dict.fromkeys(one.spec.table_bucket for one in (settings, *settings.guests))
    of_tables = {"kms:EncryptionContext:aws:s3:arn": [f"{arn}/*" for arn in buckets if arn]}
    if not any(of_tables.values()):
        return []
    actions = ["kms:GenerateDataKey", "kms:Decrypt"]
    return [_allow("KeepTables", name_principal("maintenance.s3tables"), actions, {"StringLike": of_tables})]


def allow_notifications(settings: Settings, arns: Arns) -> list[Statement]:
    """Allow alarms and rules to publish to the topics that the stage and its guests make; none without an e-mail.

    For EventBridge the key's policy may have no condition on the event's source:
    https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#compatibility-with-aws-services. The topics are
    named by the beginning of their names instead, since each refers to its key.
    """
    mailed = [one for one in (settings, *settings.guests) if one.deployment.alarms.email]
    topics = [arn for one in mailed for arn in DeployedNames(one.spec.pipeline, one.stage).list_arns("Topics", arns)]
    if not topics:
        return []
    actions = ["kms:Decrypt", "kms:GenerateDataKey*"]
    account = {"StringEquals": {"aws:SourceAccount": arns.account}}
    for_topics = {"ArnLike": {"kms:EncryptionContext:aws:sns:topicArn": topics}}
    return [
        _allow("NotifyOfAlarms", name_principal("cloudwatch"), actions, account),
        _allow("NotifyOfFailedLoads", name_principal("events"), actions, for_topics),
    ]


def _allow(sid: str, service: str, actions: list[str], conditions: Conditions) -> Statement:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": actions,
        "Resource": "*",
        "Condition": conditions,
    }
