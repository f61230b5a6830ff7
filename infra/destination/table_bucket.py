"""Make the table bucket of Amazon S3 Tables and its namespaces, or tell the owner of an existing one what it needs.

By CloudFormation's own types: the CDK's constructs for them, aws-s3tables-alpha, are released with breaking changes.
"""

import json
from collections.abc import Mapping
from typing import Final

from aws_cdk import Annotations
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3tables as s3tables
from constructs import Construct

from infra.destination.bucket import NONCURRENT_DAYS
from infra.destination.foreign import grant_all, list_allowed
from infra.destination.logical_ids import make_logical_id
from infra.removal import choose_removal
from infra.settings import Settings
from lakewriter.policy.roles import Role
from lakewriter.policy.table_bucket import makes_table_bucket

LOGICAL_ID: Final = "TableBucket"
_REMOVAL: Final = "icebergUnreferencedFileRemoval"


class TableBucket(Construct):
    """The table bucket ``arn``, and a namespace for each schema, unless they are there already; nothing for a file
    whose tables lie in a bucket. ``host`` is of the stack that makes the table bucket of several files."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        key: kms.IKey | None,
        host: "TableBucket | None" = None,
    ) -> None:
        super().__init__(scope, id_)
        self._settings = settings
        self.arn: str | None = settings.spec.table_bucket
        self._is_made: bool = makes_table_bucket(settings.spec, settings.deployment)
        if self.arn is None or not self._is_made:
            return
        is_hosts = host is not None and host.arn == self.arn
        arn = self.arn if is_hosts else self._make_bucket(self.arn, key).attr_table_bucket_arn
        if settings.deployment.existing.databases:
            return
        for name in dict.fromkeys(table.schema_name for table in settings.spec.tables):
            self._make_namespace(name, arn)

    def _make_bucket(self, arn: str, key: kms.IKey | None) -> s3tables.CfnTableBucket:
        bucket = s3tables.CfnTableBucket
        encryption = bucket.EncryptionConfigurationProperty(
            sse_algorithm="aws:kms" if key else "AES256", kms_key_arn=key.key_arn if key else None
        )
        made = bucket(
            self,
            LOGICAL_ID,
            table_bucket_name=arn.rpartition("/")[2],
            encryption_configuration=encryption,
            unreferenced_file_removal=bucket.UnreferencedFileRemovalProperty(
                status="Enabled",
                unreferenced_days=self._settings.deployment.unreferenced_days,
                noncurrent_days=NONCURRENT_DAYS,
            ),
        )
        made.override_logical_id(LOGICAL_ID)
        made.apply_removal_policy(choose_removal(self._settings))
        return made

    def _make_namespace(self, name: str, arn: str) -> None:
        namespace = s3tables.CfnNamespace(self, name, namespace=name, table_bucket_arn=arn)
        namespace.override_logical_id(make_logical_id("Namespace", name, separator="_"))
        namespace.apply_removal_policy(choose_removal(self._settings))

    def warn_owner(self, holders: Mapping[str, Role]) -> None:
        """Warn of what the owner of an existing table bucket has to do; ``holders`` are by readable ARN."""
        if self.arn is None or self._is_made:
            return
        deployment = self._settings.deployment
        is_elsewhere = self.arn.split(":")[4] != deployment.account
        grants = [
            grant
            for arn, role in holders.items()
            for grant in (grant_all(arn, list_allowed(role, "S3Tables")) if is_elsewhere else ())
        ]
        policy = f", and add to its policy: {json.dumps(grants)}" if grants else ""
        Annotations.of(self).add_warning_v2(
            "lakewriter:table-bucket",
            f"Table bucket {self.arn} is used as it is. Have its owner set {_REMOVAL} in its maintenance configuration "
            f"to {deployment.unreferenced_days} or more unreferencedDays{policy}.",
        )
