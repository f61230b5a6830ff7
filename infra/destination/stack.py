"""Make the stack of the stateful resources: the bucket, its key, the roles, the databases."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from aws_cdk import Environment, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.destination.bucket import LakeBucket
from infra.destination.bucket_policy import restrict, warn_of_shared_prefix, warn_owner
from infra.destination.databases import Databases
from infra.destination.declared import declare, make_readable, read_external_ids
from infra.destination.foreign import list_destination_grants, warn_owner_of_catalog, warn_owners_of_sources
from infra.destination.key import LOGICAL_ID as KEY
from infra.destination.key import Key, has_customer_key
from infra.destination.lake_formation import Principal, add_grants, add_tags
from infra.destination.outputs import Outputs
from infra.destination.policies import Declared
from infra.destination.roles import JOB_LOGICAL_ID, OPTIMIZER_LOGICAL_ID, Roles
from infra.destination.table_bucket import TableBucket
from infra.destination.user import LOGICAL_ID as USER
from infra.destination.user import KeyedUser
from infra.removal import choose_removal
from infra.settings import Settings
from infra.synthesizer import make_synthesizer, set_flags
from lakewriter.policy.arns import Arns
from lakewriter.policy.parties import find_reach
from lakewriter.policy.role_documents import Who
from lakewriter.policy.roles import OPTIMIZERS, Role
from lakewriter.policy.roles import USER as USER_ROLE


class DestinationStack(Stack):
    """``job_role`` gets no policies if it is an existing one; ``roles`` are the trusted parties' roles by name.

    With a ``host``, the tables lie in its bucket, under its key; its bucket's policy is about them too.
    """

    def __init__(
        self, scope: Construct, id_: str, *, settings: Settings, host: "DestinationStack | None" = None
    ) -> None:
        deployment, access = settings.deployment, settings.spec.access
        super().__init__(
            scope,
            id_,
            stack_name=settings.stack_names[0],
            description=f"Lakewriter: the destination of {settings.spec.pipeline}, stage {settings.stage}",
            # The region of a custom endpoint's store need not be a region of AWS.
            env=Environment(account=deployment.account, region=None if access.endpoint else access.region),
            termination_protection=settings.protected,
            synthesizer=make_synthesizer(settings, shared=True),
        )
        set_flags(self)
        if deployment.permissions_boundary_arn:
            arn = deployment.permissions_boundary_arn
            iam.PermissionsBoundary.of(self).apply(iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", arn))
        arns = Arns(self.partition, self.account, self.region)
        shown = make_readable(arns, key=None)
        self.host = host
        self.key: kms.IKey | None = host.key if host else None
        if host:
            self.add_dependency(host)
        elif has_customer_key(settings):
            self.key = Key(self, "Encryption", settings=settings, arns=arns, shown=shown).key
        ids = read_external_ids(self, settings)
        declared = self._declare_roles(settings, ids)
        lake = LakeBucket(
            self,
            "Lake",
            settings=settings,
            arns=replace(arns, key=self.key.key_arn if self.key else None),
            shown=replace(shown, key=self._name_key(settings)),
            key=self.key,
            hosted=host is not None,
        )
        self.tables: TableBucket = TableBucket(
            self, "Tables", settings=settings, key=self.key, host=host.tables if host else None
        )
        roles = Roles(self, "Roles", settings=settings, declared=declared)
        user = self._make_user(settings, declared)
        self._restrict(settings, lake, roles, user, declared)
        self.tables.warn_owner(self._name_holders(settings, roles, declared))
        databases = Databases(self, "Databases", settings=settings)
        self._govern(settings, databases, roles, user, declared)
        Outputs(
            self,
            "Outputs",
            settings=settings,
            roles=roles,
            external_ids=ids,
            secret_arn=user.secret.secret_arn if user else None,
        )
        self.bucket: s3.IBucket = lake.bucket
        self.job_role: iam.IRole = roles.job
        self.roles: dict[str, iam.IRole] = {consumer.name: consumer.role for consumer in roles.consumers}

    def _declare_roles(self, settings: Settings, ids: Mapping[str, tuple[str, ...]]) -> list[Declared]:
        arns = Arns(self.partition, self.account, self.region, self.key.key_arn if self.key else None)
        return declare(settings, arns=arns, shown=make_readable(arns, key=self._name_key(settings)), external_ids=ids)

    def _name_key(self, settings: Settings) -> str | None:
        """Name the key as people know it."""
        return settings.deployment.existing.kms_key_arn or (f"<{KEY}.Arn>" if self.key else None)

    def _name_holders(
        self, settings: Settings, roles: Roles, declared: Sequence[Declared], *, taken: bool = False
    ) -> dict[str, Role]:
        """Name who holds the stack's policies, by readable ARNs; with ``taken``, the role that the job takes too."""
        job = settings.deployment.existing.job_role_arn or f"<{JOB_LOGICAL_ID}.Arn>"
        named = {"job": job, USER_ROLE: f"<{USER}.Arn>", OPTIMIZERS: f"<{OPTIMIZER_LOGICAL_ID}.Arn>"}
        named |= {consumer.name: consumer.shown for consumer in roles.consumers}
        arn = settings.spec.access.role_arn
        named |= {arn.rpartition("/")[2]: arn} if taken and arn else {}
        return {
            named[declaration.role.name]: declaration.readable
            for declaration in declared
            if declaration.role.name in named
        }

    def _make_user(self, settings: Settings, declared: Sequence[Declared]) -> KeyedUser | None:
        if settings.deployment.user is None:
            return None
        user = next(entry for entry in declared if entry.role.name == USER_ROLE)
        return KeyedUser(self, "VendorUser", settings=settings, declared=user, key=self.key)

    def _govern(
        self,
        settings: Settings,
        databases: Databases,
        roles: Roles,
        user: KeyedUser | None,
        declared: Sequence[Declared],
    ) -> None:
        """Grant rights in Lake Formation, or have the owner of another account's catalog grant them."""
        deployment = settings.deployment
        if settings.spec.access.catalog_account:
            arns = Arns(self.partition, self.account, self.region)
            shown = make_readable(arns, key=self._name_key(settings))
            holders = self._name_holders(settings, roles, declared, taken=True)
            warn_owner_of_catalog(databases, settings=settings, shown=shown, holders=holders)
        elif deployment.lake_formation:
            if deployment.governed and databases.names:
                add_tags(databases, deployment.governed, removal=choose_removal(settings))
            add_grants(databases, self._list_principals(settings, roles, user))

    def _list_principals(self, settings: Settings, roles: Roles, user: KeyedUser | None) -> Iterator[Principal]:
        """List the principals that need grants; the job calls Glue with the role it assumes, if there is one."""
        access = settings.spec.access
        if not access.access_key_id:
            yield Principal("Job", access.role_arn or roles.job.role_arn, Who.JOB)
        reached = {
            name: find_reach(settings.spec, party).catalog
            for name, party in settings.deployment.parties
            if party.access != "load"
        }
        tags = {name: party.lf_tags for name, party in settings.deployment.parties}
        for consumer in roles.consumers:
            bounds, by = reached.get(consumer.name), tags.get(consumer.name)
            yield Principal(consumer.logical_id, consumer.role.role_arn, consumer.who, bounds, by)
        if roles.optimizers:
            yield Principal("Optimizers", roles.optimizers.role_arn, Who.OPTIMIZER)
        if user:
            yield Principal(USER, user.user.user_arn, user.who, reached.get("iam_user"), tags.get("iam_user"))

    def _restrict(
        self,
        settings: Settings,
        lake: LakeBucket,
        roles: Roles,
        user: KeyedUser | None,
        declared: Sequence[Declared],
    ) -> None:
        """Deny the control objects to every identity that runs no loads; stores with a custom endpoint have no such
        policies."""
        arns = Arns(self.partition, self.account, self.region, self.key.key_arn if self.key else None)
        shown = make_readable(arns, key=None)
        job = settings.deployment.existing.job_role_arn or f"<{JOB_LOGICAL_ID}.Arn>"
        warn_owners_of_sources(lake, settings=settings, shown=shown, job_role=job)
        if settings.spec.access.endpoint:
            return
        if self.host:
            warn_of_shared_prefix(lake, settings=settings)
            return
        others = [consumer for consumer in roles.consumers if consumer.who is not Who.LOADER]
        kept_out = {consumer.shown: consumer.role.role_arn for consumer in others}
        if roles.optimizers:
            kept_out[f"<{OPTIMIZER_LOGICAL_ID}.Arn>"] = roles.optimizers.role_arn
        if user and user.who is not Who.LOADER:
            kept_out[f"<{USER}.Arn>"] = user.user.user_arn
        free = {name for name, party in settings.deployment.parties if party.any_encryption}
        exempt = {consumer.shown: consumer.role.role_arn for consumer in roles.consumers if consumer.name in free}
        if user and "iam_user" in free:
            exempt[f"<{USER}.Arn>"] = user.user.user_arn
        if lake.made:
            denied = list(kept_out.values())
            restrict(lake, settings=settings, arns=arns, kept_out=denied, exempt=list(exempt.values()))
        else:
            grants = list_destination_grants(settings, shown, self._name_holders(settings, roles, declared))
            warn_owner(
                lake, settings=settings, shown=shown, kept_out=list(kept_out), exempt=list(exempt), grants=grants
            )
        warn_of_shared_prefix(lake, settings=settings)
