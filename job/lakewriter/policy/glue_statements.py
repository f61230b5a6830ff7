"""What each role may do in the Glue Data Catalog."""

from collections.abc import Iterator, Sequence
from typing import Final

from lakewriter.naming import CHECK_TABLE
from lakewriter.policy.arns import Arns, literal
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.specification import Spec

_DATABASE: Final = "glue:GetDatabase"
_NEW_DATABASE: Final = "glue:CreateDatabase"
_TABLE: Final = ("glue:GetTable", "glue:CreateTable", "glue:UpdateTable")
_PARTITION: Final = ("glue:GetPartition", "glue:BatchCreatePartition")
_CATALOG: Final = ("glue:GetCatalog", "glue:GetCatalogs")
"""What Iceberg's engines ask of the catalog itself."""
_VENDOR: Final = (_DATABASE, "glue:GetDatabases", _NEW_DATABASE, "glue:UpdateDatabase", *_TABLE, "glue:GetTables")
_LOADER_PARTITION: Final = (*_PARTITION, "glue:GetPartitions")
"""Listing serves ``verify``, which looks for partitions that point at another one's files."""
_VENDOR_PARTITION: Final = (*_LOADER_PARTITION, "glue:CreatePartition")
_READ: Final = (
    _DATABASE, "glue:GetDatabases", "glue:GetTable", "glue:GetTables",
    "glue:GetPartition", "glue:GetPartitions", "glue:BatchGetPartition",
)  # fmt: skip
_RESET: Final = ("glue:DeleteTable", "glue:BatchDeleteTable", "glue:DeleteDatabase")

_BUDGET: Final = 5000
"""Characters of ARNs in a managed policy, which IAM limits to 6144 in all."""
_ARN: Final = 50
"""Characters of an ARN before its last part, with quotes and comma, in the partition with the longest names."""


def used(spec: Spec) -> bool:
    """Whether the tables are in the Data Catalog."""
    return spec.in_glue


def loader(spec: Spec, arns: Arns, *, new_databases: bool) -> list[Statement]:
    """The file's own databases and tables, and the names under which ``lakewriter check`` tries to write."""
    if not used(spec):
        return []
    actions = [
        _DATABASE,
        *([_NEW_DATABASE] if new_databases else []),
        *_TABLE,
        *(() if spec.iceberg else _LOADER_PARTITION),
    ]
    return [
        *([allow("ReadCatalog", _CATALOG[:1], [arns.glue("catalog")])] if spec.iceberg else []),
        allow("WriteTables", actions, _resources(arns, _own(spec))),
    ]


def vendor(spec: Spec, arns: Arns, *, reset: bool) -> list[Statement]:
    """Whatever databases a vendor makes under its prefix; its list of actions is its document's."""
    if not used(spec):
        return []
    paths = _prefixed(spec)
    functions = [path.replace("table/", "userDefinedFunction/") for path in paths if path.startswith("table/")]
    return [
        allow(
            "ReadCatalog",
            [*(_CATALOG if spec.iceberg else ()), "glue:GetCatalogImportStatus"],
            [arns.glue("catalog")],
        ),
        allow("WriteTables", [*_VENDOR, *(() if spec.iceberg else _VENDOR_PARTITION)], _resources(arns, paths)),
        *([allow("ResetTables", _RESET, _resources(arns, [*paths, *functions]))] if reset else []),
    ]


def reader(spec: Spec, arns: Arns) -> list[Statement]:
    """Looking up the tables that may be read."""
    return [allow("ReadTables", _READ, _resources(arns, _prefixed(spec)))] if used(spec) else []


def data_access() -> Statement:
    """Lake Formation's part, which has no resources of its own: grants in Lake Formation say on what."""
    return allow("AskLakeFormation", ["lakeformation:GetDataAccess"], ["*"])


def _resources(arns: Arns, paths: Sequence[str]) -> list[str]:
    return [arns.glue("catalog"), *map(arns.glue, paths)]


def _own(spec: Spec) -> list[str]:
    """Exactly the file's tables; where so many do not fit into a policy, all tables of each database."""
    exact = [f"table/{literal(table.schema_name)}/{literal(table.name)}" for table in spec.tables]
    databases = list(_databases(spec))
    named = [f"database/{name}" for name in databases]
    checked = [f"table/{name}/{CHECK_TABLE}*" for name in databases]
    every = [f"table/{name}/*" for name in databases]
    ladder = ([*named, *exact, *checked], [*named, *every])
    fitting = (paths for paths in ladder if sum(len(path) + _ARN for path in paths) <= _BUDGET)
    return next(fitting, _prefixed(spec))


def _prefixed(spec: Spec) -> list[str]:
    """``P`` and ``P_*``, since ``P*`` would cover what merely begins alike; without ``P`` the file's databases."""
    prefix, below = literal(spec.database_prefix), literal(spec.databases_below)
    names = [prefix, f"{below}*"] if prefix else list(_databases(spec))
    return [f"{kind}/{name}{below}" for kind, below in (("database", ""), ("table", "/*")) for name in names]


def _databases(spec: Spec) -> Iterator[str]:
    yield from dict.fromkeys(literal(table.schema_name) for table in spec.tables)
