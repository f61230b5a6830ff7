"""Allow each role what it needs in a table bucket of Amazon S3 Tables, by the operations that it calls there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from lakewriter.policy.statements import Conditions, Statement, allow
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.trust import Party

PREFIX: Final = "s3tables:"
OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "getConfig": ("GetTableBucket",),
    "listNamespaces": ("ListNamespaces",),
    "createNamespace": ("CreateNamespace",),
    "loadNamespaceMetadata": ("GetNamespace",),
    "namespaceExists": ("GetNamespace",),
    "listTables": ("ListTables",),
    "createTable": ("CreateTable", "PutTableData"),
    "loadTable": ("GetTableMetadataLocation", "GetTableData"),
    "updateTable": ("UpdateTableMetadataLocation", "PutTableData", "GetTableData"),
    "tableExists": ("GetTable",),
    "dropTable": ("DeleteTable",),
    "dropNamespace": ("DeleteNamespace",),
    "renameTable": ("RenameTable",),
    **dict.fromkeys(("GetObject", "HeadObject", "ListParts"), ("GetTableData",)),
    **dict.fromkeys(
        ("PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "AbortMultipartUpload"),
        ("PutTableData",),
    ),
}
"""Maps operations of the Iceberg REST endpoint, and of S3 on a table's objects, to the actions that they ask for. The
service's own operations ask for the action of their name.

"Accessing tables using the Amazon S3 Tables Iceberg REST endpoint":
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-integrating-open-source.html; "Access management for S3
Tables": https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-setting-up.html
"""
_READS: Final = ("getConfig", "loadTable", "tableExists", "GetObject", "HeadObject")
_LISTS: Final = ("listNamespaces", "loadNamespaceMetadata", "namespaceExists", "listTables")
_WRITES: Final = (
    *_READS, "ListParts", "loadNamespaceMetadata", "createNamespace", "createTable", "updateTable", "PutObject",
    "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "AbortMultipartUpload",
    "GetTableBucketMaintenanceConfiguration", "GetTableMaintenanceConfiguration", "PutTableMaintenanceConfiguration",
)  # fmt: skip
"""Of a load, an undo and ``lakewriter check``. A load sets how long the service keeps a table's snapshots."""
_OF_BUCKET: Final = (
    "GetTableBucket", "GetTableBucketMaintenanceConfiguration", "ListNamespaces", "CreateNamespace",
)  # fmt: skip
"""Actions on the table bucket that have no condition key of a namespace."""
_OF_NAMESPACE: Final = ("GetNamespace", "ListTables", "CreateTable")
"""Actions on the table bucket that have one.

https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3tables.html
"""
_OF_ABSENT: Final = ("GetTable", "GetTableMetadataLocation")
"""Actions that a first load asks for before its table is there: no page says that such a table has a name for IAM."""
_BUDGET: Final = 4500
"""Characters of tables' names in a managed policy, which IAM limits to 6,144 in all."""

Names = Mapping[str, Sequence[str]]
"""Tables by their namespaces; all of a namespace where there is none."""


def list_actions(operations: Iterable[str]) -> list[str]:
    """List the actions that operations ask for, without their prefix."""
    return list(dict.fromkeys(action for operation in operations for action in OPERATIONS.get(operation, (operation,))))


def makes_table_bucket(spec: Spec, deployment: Deployment) -> bool:
    """Return True if the stacks make the table bucket: one of their account that is not there already."""
    if spec.table_bucket is None or deployment.existing.table_bucket:
        return False
    return spec.table_bucket.split(":")[4] == deployment.account


def allow_loader(spec: Spec) -> list[Statement]:
    """Allow writing the file's tables; nothing where they lie in no table bucket."""
    return _allow(spec, _WRITES, _list_own(spec), "Write")


def allow_operator(spec: Spec) -> list[Statement]:
    """Allow reading the file's tables, to compare them with what was loaded, and aborting the uploads of a load that is
    abandoned: that is an action with writing objects, while no table is made or changed without others."""
    return _allow(spec, (*_READS, "AbortMultipartUpload"), _list_own(spec), "Read")


def allow_reader(spec: Spec, deployment: Deployment, party: Party) -> list[Statement]:
    """Allow reading the tables that a party reaches, by the endpoint, and by Glue's federated catalog of the account.

    A party with ``paths`` has objects of the bucket, and no tables.
    """
    if spec.table_bucket is None or (party.paths and not party.tables):
        return []
    names = _list_reached(spec, party)
    return [
        *_allow(spec, (*_READS, *_LISTS), names, "Read"),
        allow("ReadFederatedTables", _GLUE, list(_list_federated(spec, names))),
        *([allow("AskLakeFormation", ["lakeformation:GetDataAccess"], ["*"])] if deployment.lake_formation else []),
    ]


_GLUE: Final = ("glue:GetCatalog", "glue:GetDatabase", "glue:GetDatabases", "glue:GetTable", "glue:GetTables")


def _list_federated(spec: Spec, names: Names) -> Iterator[str]:
    """List what Athena and Redshift look up: https://docs.aws.amazon.com/glue/latest/dg/glue-federation-s3tables.html"""
    _, partition, _, region, account, _ = str(spec.table_bucket).split(":")
    start, catalog = f"arn:{partition}:glue:{region}:{account}", spec.service and spec.service.federated_catalog
    yield from (f"{start}:{path}" for path in ("catalog", "catalog/s3tablescatalog", f"catalog/{catalog}"))
    for namespace, tables in names.items():
        yield f"{start}:database/{catalog}/{namespace}"
        yield from (f"{start}:table/{catalog}/{namespace}/{table}" for table in tables or ("*",))


def bound_table_bucket(spec: Spec) -> list[Statement]:
    """Bound what the roles do in the table bucket, and in Glue's catalog of it."""
    if spec.table_bucket is None:
        return []
    actions = ["Get*", "List*", "CreateNamespace", "CreateTable", "PutTableData", "UpdateTableMetadataLocation"]
    actions.append("PutTableMaintenanceConfiguration")
    federated = list(_list_federated(spec, {"*": ()}))
    return [
        allow(
            "TableBucket", [f"{PREFIX}{action}" for action in actions], [spec.table_bucket, f"{spec.table_bucket}/*"]
        ),
        allow("FederatedTables", ["glue:GetCatalog", "glue:GetDatabase*", "glue:GetTable*"], federated),
    ]


def _allow(spec: Spec, operations: Sequence[str], names: Names, verb: str) -> list[Statement]:
    arn = spec.table_bucket
    if arn is None:
        return []
    asked, namespaces = list_actions(operations), _list_namespaces(names)
    in_tables = [action for action in asked if action not in {*_OF_BUCKET, *_OF_NAMESPACE, *_OF_ABSENT}]
    return [
        _make("FindTableBucket", [action for action in asked if action in _OF_BUCKET], arn),
        *(
            _make(sid, actions, resource, namespaces)
            for sid, kind, resource in (
                ("UseNamespaces", _OF_NAMESPACE, arn),
                ("FindTablesInBucket", _OF_ABSENT, f"{arn}/table/*"),
            )
            if (actions := [action for action in asked if action in kind])
        ),
        *_allow_tables(f"{verb}TablesInBucket", in_tables, f"{arn}/table/*", names),
    ]


def _allow_tables(sid: str, actions: Sequence[str], resource: str, names: Names) -> Iterator[Statement]:
    """Allow actions on tables by their names: a table's ARN has an id that the service chooses.

    Names are of all namespaces at once in a condition, so that each namespace has a statement of its own. Names that
    fit into no policy are left out.
    """
    if sum(len(name) + 3 for tables in names.values() for name in tables) > _BUDGET:
        names = dict.fromkeys(names, ())
    if not any(names.values()):
        yield _make(sid, actions, resource, _list_namespaces(names))
        return
    for number, (namespace, tables) in enumerate(names.items(), start=1):
        named = {"s3tables:tableName": list(tables)} if tables else {}
        conditions: Conditions = {"StringEquals": {"s3tables:namespace": [namespace], **named}}
        yield _make(sid if len(names) == 1 else f"{sid}{number}", actions, resource, conditions)


def _make(sid: str, actions: Sequence[str], resource: str, conditions: Conditions | None = None) -> Statement:
    return allow(sid, [f"{PREFIX}{action}" for action in actions], [resource], conditions)


def _list_namespaces(names: Names) -> Conditions:
    return {"StringEquals": {"s3tables:namespace": list(names)}}


def _list_own(spec: Spec) -> dict[str, list[str]]:
    """List the file's tables, with those of their bad rows, by their namespaces."""
    names: dict[str, list[str]] = {}
    for table in spec.tables:
        names.setdefault(table.schema_name, []).extend(table.names_in_catalog)
    return names


def _list_reached(spec: Spec, party: Party) -> dict[str, list[str]]:
    """List the tables that a party reaches: those that it names, or all of the file's namespaces."""
    if not party.tables:
        return {table.schema_name: [] for table in spec.tables}
    names: dict[str, list[str]] = {}
    for name in party.tables:
        namespace, _, table = name.rpartition(".")
        names.setdefault(namespace, []).append(table)
    return {namespace: [] if "*" in tables else tables for namespace, tables in names.items()}
