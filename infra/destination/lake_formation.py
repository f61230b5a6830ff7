"""Add grants in Lake Formation, for accounts where IAM permissions alone give no access to tables.

https://docs.aws.amazon.com/lake-formation/latest/dg/lf-permissions-reference.html
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_lakeformation as lakeformation
from constructs import Construct, IDependable

from infra.destination.databases import Databases
from infra.destination.logical_ids import make_logical_id
from lakewriter.policy.role_documents import Who
from lakewriter.spec.deployment import LakeFormation

DATABASE: Final = {
    Who.JOB: ("DESCRIBE", "CREATE_TABLE"),
    Who.LOADER: ("DESCRIBE", "CREATE_TABLE"),
    Who.VENDOR: ("DESCRIBE", "CREATE_TABLE"),
    Who.OPTIMIZER: ("DESCRIBE",),
    Who.READER: ("DESCRIBE",),
}
TABLES: Final = {
    Who.JOB: ("DESCRIBE", "SELECT", "INSERT", "DELETE", "ALTER"),
    Who.LOADER: ("DESCRIBE", "SELECT", "INSERT", "DELETE", "ALTER"),
    # The tables of these databases are the job's. A table's creator holds every permission on it without a grant:
    # https://docs.aws.amazon.com/lake-formation/latest/dg/lf-permissions-reference.html
    Who.VENDOR: ("DESCRIBE",),
    Who.OPTIMIZER: ("DESCRIBE", "SELECT", "INSERT", "DELETE", "ALTER"),
    Who.READER: ("DESCRIBE", "SELECT"),
}


class Principal(NamedTuple):
    """A principal that gets grants; ``id`` is the prefix of its construct ids, ``reached`` bounds a party to what it
    reaches in the catalog."""

    id: str
    arn: str
    who: Who
    reached: tuple[str, ...] | None = None
    tags: Mapping[str, str] | None = None
    """The LF-tags that grant its rights, in place of the names of databases."""


def add_tags(databases: Databases, governed: LakeFormation, *, removal: RemovalPolicy) -> None:
    """Add the LF-tags to the databases; their tables inherit them.

    https://docs.aws.amazon.com/lake-formation/latest/dg/tag-based-access-control.html
    """
    account = Stack.of(databases).account
    keys: list[IDependable] = []
    for key, value in governed.tags.items() if governed.create_tags else ():
        made = lakeformation.CfnTag(
            databases, make_logical_id("LfTag", key, separator="_"), catalog_id=account, tag_key=key, tag_values=[value]
        )
        # Without its key, every database of the account would lose the tag, and everybody what is granted by it.
        made.apply_removal_policy(removal)
        keys.append(made)
    for name in databases.names:
        association = lakeformation.CfnTagAssociation(
            databases,
            make_logical_id("LfTags", name, separator="_"),
            resource=lakeformation.CfnTagAssociation.ResourceProperty(
                database=lakeformation.CfnTagAssociation.DatabaseResourceProperty(catalog_id=account, name=name)
            ),
            lf_tags=[
                lakeformation.CfnTagAssociation.LFTagPairProperty(catalog_id=account, tag_key=key, tag_values=[value])
                for key, value in governed.tags.items()
            ],
        )
        association.node.add_dependency(*databases.made, *keys)


def add_grants(databases: Databases, principals: Iterable[Principal]) -> None:
    """Add grants on ``databases``, or by LF-tags where a party has some; none without Glue, and no account settings."""
    for id_, arn, who, reached, tags in principals:
        if who in TABLES and tags and databases.names:
            _add_grants_by_tags(databases, f"{id_}Grants", arn, who, tags)
            continue
        names = [name for name in databases.names if reached is None or _is_reached(name, reached)]
        if who in TABLES and names:
            made = Grants(
                databases,
                f"{id_}Grants",
                principal_arn=arn,
                who=who,
                names=names,
            )
            made.node.add_dependency(*databases.made)


def _add_grants_by_tags(databases: Databases, id_: str, principal_arn: str, who: Who, tags: Mapping[str, str]) -> None:
    """Add grants on every database and every table that has all of the tags, in whichever stack they are made."""
    properties = lakeformation.CfnPrincipalPermissions
    expression = [properties.LFTagProperty(tag_key=key, tag_values=[value]) for key, value in tags.items()]
    scope = Construct(databases, id_)
    for kind, permissions in (("Database", DATABASE[who]), ("Table", TABLES[who])):
        policy = properties.LFTagPolicyResourceProperty(
            catalog_id=Stack.of(databases).account, resource_type=kind.upper(), expression=expression
        )
        made = properties(
            scope,
            f"{kind}ByTags",
            principal=properties.DataLakePrincipalProperty(data_lake_principal_identifier=principal_arn),
            resource=properties.ResourceProperty(lf_tag_policy=policy),
            permissions=list(permissions),
            permissions_with_grant_option=[],
        )
        keys = [child for child in databases.node.children if isinstance(child, lakeformation.CfnTag)]
        made.node.add_dependency(*keys)


def _is_reached(name: str, reached: Sequence[str]) -> bool:
    return any(fnmatchcase(f"database/{name}", path) for path in reached)


class Grants(Construct):
    """The grants of one principal on the file's databases and their tables."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        principal_arn: str,
        who: Who,
        names: Sequence[str],
    ) -> None:
        super().__init__(scope, id_)
        principal = lakeformation.CfnPrincipalPermissions.DataLakePrincipalProperty(
            data_lake_principal_identifier=principal_arn
        )
        for name in names:
            for kind, target, permissions in (
                ("Database", _target_database(self, name), DATABASE[who]),
                ("Tables", _target_tables(self, name), TABLES[who]),
            ):
                lakeformation.CfnPrincipalPermissions(
                    self,
                    make_logical_id(kind, name, separator="_"),
                    principal=principal,
                    resource=target,
                    permissions=list(permissions),
                    permissions_with_grant_option=[],
                )


def _target_database(scope: Construct, name: str) -> lakeformation.CfnPrincipalPermissions.ResourceProperty:
    properties = lakeformation.CfnPrincipalPermissions
    database = properties.DatabaseResourceProperty(catalog_id=Stack.of(scope).account, name=name)
    return properties.ResourceProperty(database=database)


def _target_tables(scope: Construct, name: str) -> lakeformation.CfnPrincipalPermissions.ResourceProperty:
    """Target every table of the database, including future ones."""
    properties = lakeformation.CfnPrincipalPermissions
    tables = properties.TableResourceProperty(catalog_id=Stack.of(scope).account, database_name=name, table_wildcard={})
    return properties.ResourceProperty(table=tables)
