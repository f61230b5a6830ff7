"""Add grants in Lake Formation, for accounts where IAM permissions alone give no access to tables.

https://docs.aws.amazon.com/lake-formation/latest/dg/lf-permissions-reference.html
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from aws_cdk import Stack
from aws_cdk import aws_lakeformation as lakeformation
from constructs import Construct

from infra.destination.databases import Databases
from infra.destination.logical_ids import make_logical_id
from lakewriter.policy.role_documents import Who

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
    # The tables of these databases are the job's. Whoever creates a table holds every permission on it without a grant:
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


def add_grants(databases: Databases, principals: Iterable[Principal]) -> None:
    """Add grants on ``databases`` only, no account settings."""
    for id_, arn, who, reached in principals:
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
