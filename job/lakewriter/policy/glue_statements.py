"""Allow each role what it needs in the Glue Data Catalog."""

from collections.abc import Iterator, Sequence
from typing import Final

from lakewriter.naming import CHECK_TABLE
from lakewriter.policy.arns import Arns, escape
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.specification import Spec

_DATABASE: Final = "glue:GetDatabase"
_NEW_DATABASE: Final = "glue:CreateDatabase"
_TABLE: Final = ("glue:GetTable", "glue:CreateTable", "glue:UpdateTable")
_PARTITION: Final = ("glue:GetPartition", "glue:BatchCreatePartition")
_CATALOG: Final = ("glue:GetCatalog", "glue:GetCatalogs")
"""Actions on the catalog itself, which Iceberg engines call."""
_VENDOR: Final = (_DATABASE, "glue:GetDatabases", _NEW_DATABASE, "glue:UpdateDatabase", *_TABLE, "glue:GetTables")
_LOADER_PARTITION: Final = (*_PARTITION, "glue:GetPartitions")
"""``verify`` lists partitions, to find those whose location belongs to another partition."""
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


def allow_loader(spec: Spec, arns: Arns, *, new_databases: bool) -> list[Statement]:
    """Allow writing the file's databases and tables, and the table names that ``lakewriter check`` tries to write."""
    if not spec.in_glue:
        return []
    actions = [
        _DATABASE,
        *([_NEW_DATABASE] if new_databases else []),
        *_TABLE,
        *(() if spec.iceberg else _LOADER_PARTITION),
    ]
    return [
        *([allow("ReadCatalog", _CATALOG[:1], [arns.glue("catalog")])] if spec.iceberg else []),
        allow("WriteTables", actions, _make_resources(arns, _list_table_paths(spec))),
    ]


def allow_vendor(spec: Spec, arns: Arns, *, reset: bool) -> list[Statement]:
    """Allow a vendor its own list of actions on every database under its prefix."""
    if not spec.in_glue:
        return []
    paths = _list_prefix_paths(spec)
    functions = [path.replace("table/", "userDefinedFunction/") for path in paths if path.startswith("table/")]
    return [
        allow(
            "ReadCatalog",
            [*(_CATALOG if spec.iceberg else ()), "glue:GetCatalogImportStatus"],
            [arns.glue("catalog")],
        ),
        allow("WriteTables", [*_VENDOR, *(() if spec.iceberg else _VENDOR_PARTITION)], _make_resources(arns, paths)),
        *([allow("ResetTables", _RESET, _make_resources(arns, [*paths, *functions]))] if reset else []),
    ]


def allow_reader(spec: Spec, arns: Arns) -> list[Statement]:
    """Allow looking up the tables and partitions under the prefix."""
    return [allow("ReadTables", _READ, _make_resources(arns, _list_prefix_paths(spec)))] if spec.in_glue else []


def allow_data_access() -> Statement:
    """Allow asking Lake Formation for data access: the action takes no resources, grants there name the tables."""
    return allow("AskLakeFormation", ["lakeformation:GetDataAccess"], ["*"])


def _make_resources(arns: Arns, paths: Sequence[str]) -> list[str]:
    return [arns.glue("catalog"), *map(arns.glue, paths)]


def _list_table_paths(spec: Spec) -> list[str]:
    """List exactly the file's tables; if they do not fit into a policy, all tables of each database."""
    exact = [f"table/{escape(table.schema_name)}/{escape(table.name)}" for table in spec.tables]
    databases = list(_list_databases(spec))
    named = [f"database/{name}" for name in databases]
    checked = [f"table/{name}/{CHECK_TABLE}*" for name in databases]
    every = [f"table/{name}/*" for name in databases]
    choices = ([*named, *exact, *checked], [*named, *every])
    fitting = (paths for paths in choices if sum(len(path) + _ARN for path in paths) <= _BUDGET)
    return next(fitting, _list_prefix_paths(spec))


def _list_prefix_paths(spec: Spec) -> list[str]:
    """List ``P`` and ``P_*``, since ``P*`` also matches ``PQ``; without a prefix ``P``, the file's own databases."""
    prefix, below = escape(spec.database_prefix), escape(spec.databases_below)
    names = [prefix, f"{below}*"] if prefix else list(_list_databases(spec))
    return [f"{kind}/{name}{below}" for kind, below in (("database", ""), ("table", "/*")) for name in names]


def _list_databases(spec: Spec) -> Iterator[str]:
    yield from dict.fromkeys(escape(table.schema_name) for table in spec.tables)
