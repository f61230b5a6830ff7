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
from lakewriter.policy.arns import Arns
from lakewriter.policy.deployer_statements import allow_key_administration
from lakewriter.policy.statements import Statement

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
        for statement in allow_services(settings, arns):
            key.add_to_resource_policy(iam.PolicyStatement.from_json(statement))
        if settings.deployment.permissions_boundary_arn:
            administration = allow_key_administration(settings.deployment, arns)
            key.add_to_resource_policy(iam.PolicyStatement.from_json(administration))
        self.key = key


def allow_services(settings: Settings, arns: Arns) -> list[Statement]:
    """Allow AWS services to use the key for this account; its roles have permissions of their own."""
    account = {"StringEquals": {"aws:SourceAccount": arns.account}}
    applications = {"ArnLike": {"aws:SourceArn": arns.applications()}}
    log_groups = f"arn:{arns.partition}:logs:{arns.region}:{arns.account}:log-group:*"
    statements = [
        _allow(
            "EncryptLogGroups",
            f"logs.{arns.region}.amazonaws.com",
            ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
            {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": log_groups}},
        ),
        _allow(
            "EncryptJobLogs",
            "emr-serverless.amazonaws.com",
            ["kms:Decrypt", "kms:GenerateDataKey"],
            {**account, **applications},
        ),
    ]
    if settings.deployment.alarms.email:
        actions = ["kms:Decrypt", "kms:GenerateDataKey*"]
        statements.append(_allow("NotifyOfAlarms", "cloudwatch.amazonaws.com", actions, account))
        statements.append(_allow("NotifyOfFailedLoads", "events.amazonaws.com", actions, account))
    return statements


def _allow(sid: str, service: str, actions: list[str], conditions: dict[str, dict[str, str]]) -> Statement:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": actions,
        "Resource": "*",
        "Condition": conditions,
    }
