"""Allow each role what it needs in the catalog: the Glue Data Catalog is the one that asks for permissions of IAM."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from lakewriter.naming import CHECK_TABLE
from lakewriter.policy.arns import Arns, escape, name_services
from lakewriter.policy.parties import Reach, find_reach, list_databases, list_prefix_paths
from lakewriter.policy.prefixes import list_table_names
from lakewriter.policy.statements import Statement, allow, deny
from lakewriter.policy.trust_policies import OPTIMIZER_SERVICE
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.trust import Party
from lakewriter.spec.vendor_policy import Target, VendorPolicy

_DATABASE: Final = "glue:GetDatabase"
_NEW_DATABASE: Final = "glue:CreateDatabase"
_TABLE: Final = ("glue:GetTable", "glue:CreateTable", "glue:UpdateTable")
_PARTITION: Final = ("glue:GetPartition", "glue:BatchCreatePartition")
_CATALOG: Final = ("glue:GetCatalog", "glue:GetCatalogs")
"""Actions on the catalog itself, which Iceberg engines call."""
KEY_ACTIONS: Final = ("kms:GenerateDataKey", "kms:Decrypt", "kms:Encrypt")
"""The actions that every client of an encrypted catalog needs, also one that only reads."""
_IMPORTED: Final = "glue:GetCatalogImportStatus"
_VENDOR: Final = (_DATABASE, "glue:GetDatabases", _NEW_DATABASE, "glue:UpdateDatabase", *_TABLE, "glue:GetTables")
_LOADER_PARTITION: Final = (*_PARTITION, "glue:GetPartitions")
"""``verify`` lists partitions, to find those whose location belongs to another partition."""
_VENDOR_PARTITION: Final = (*_LOADER_PARTITION, "glue:CreatePartition")
_READ: Final = (
    _DATABASE, "glue:GetDatabases", "glue:GetTable", "glue:GetTables",
    "glue:GetPartition", "glue:GetPartitions", "glue:BatchGetPartition",
)  # fmt: skip
_CHANGE: Final = (
    "glue:Create*", "glue:Update*", "glue:Delete*", "glue:BatchCreate*", "glue:BatchUpdate*", "glue:BatchDelete*",
)  # fmt: skip
"""All that changes a table: its partitions, indexes, versions and statistics with it."""
_CHANGE_DATABASE: Final = ("glue:UpdateDatabase", "glue:DeleteDatabase")
_RESET: Final = ("glue:DeleteTable", "glue:BatchDeleteTable", "glue:DeleteDatabase")

_OPTIMIZER: Final = (
    "glue:GetTableOptimizer", "glue:CreateTableOptimizer", "glue:UpdateTableOptimizer", "glue:DeleteTableOptimizer",
)  # fmt: skip
_LOG: Final = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents")
_OPTIMIZER_LOGS: Final = tuple(
    f"/aws-glue/iceberg-{kind}/logs" for kind in ("compaction", "retention", "orphan-file-deletion")
)

_BOUND: Final = ("glue:GetCatalog*", "glue:*Database*", "glue:*Table*", "glue:*Partition*")

_BUDGET: Final = 5000
"""Characters of ARNs in a managed policy, which IAM limits to 6144 in all."""
_ARN: Final = 50
"""Characters of an ARN before its last part, with quotes and comma, in the partition with the longest names."""


def allow_loader(spec: Spec, deployment: Deployment, arns: Arns) -> list[Statement]:
    """Allow writing the file's databases and tables, and the table names that ``lakewriter check`` tries to write."""
    if not spec.in_glue:
        return []
    actions = [
        _DATABASE,
        *([] if deployment.existing.databases else [_NEW_DATABASE]),
        *_TABLE,
        *(() if spec.iceberg else _LOADER_PARTITION),
    ]
    return [
        *([allow("ReadCatalog", _CATALOG[:1], [arns.glue("catalog")])] if spec.iceberg else []),
        allow("WriteTables", actions, _make_resources(arns, _list_table_paths(spec))),
        *_allow_undo(spec, arns),
        *_allow_upkeep(spec, arns),
        *_allow_data_access(deployment),
    ]


def allow_optimizer(spec: Spec, deployment: Deployment, arns: Arns) -> list[Statement]:
    """Allow Glue's optimizers to commit to the file's Iceberg tables, and to log what they do.

    https://docs.aws.amazon.com/glue/latest/dg/optimization-prerequisites.html
    """
    tables = _make_resources(arns, _list_table_paths(spec))
    return [
        allow("MaintainTables", ["glue:GetTable", "glue:UpdateTable"], tables),
        allow("WriteOptimizerLogs", _LOG, list(map(arns.log_group, _OPTIMIZER_LOGS))),
        *_allow_data_access(deployment),
    ]


def _allow_upkeep(spec: Spec, arns: Arns) -> list[Statement]:
    """Allow setting Glue's optimizers of the file's tables, where the file has them, with their role alone; or listing
    the tables of its databases, where a command of ours deletes orphans: none may be in another table's folder."""
    if spec.maintenance is None:
        return []
    if spec.maintenance.deletes_here and spec.maintenance.delete_orphans_days is not None:
        named = [path for name in list_databases(spec) for path in (f"database/{name}", f"table/{name}/*")]
        return [allow("ListTables", ["glue:GetTables"], _make_resources(arns, named))]
    if spec.maintenance.optimizer_role is None:
        return []
    role = spec.maintenance.find_role_arn(arns.partition, arns.account)
    to_glue = {"StringEquals": {"iam:PassedToService": OPTIMIZER_SERVICE}}
    return [
        allow("SetOptimizers", _OPTIMIZER, _make_resources(arns, _list_table_paths(spec))),
        allow("PassOptimizerRole", ["iam:PassRole"], [role], to_glue),
    ]


def _allow_undo(spec: Spec, arns: Arns, *others: str) -> list[Statement]:
    """Allow dropping partitions where the file lets undos do so, and ``others``; any process that finds an undo pending
    finishes it."""
    if spec.iceberg or not spec.undo.drop_partitions:
        return []
    return [allow("DropPartitions", ["glue:DeletePartition", *others], _make_resources(arns, _list_table_paths(spec)))]


def allow_operator(spec: Spec, arns: Arns) -> list[Statement]:
    """Allow looking up the file's tables and their partitions, to compare them with what was loaded."""
    if not spec.in_glue:
        return []
    actions = [_DATABASE, "glue:GetTable", *(() if spec.iceberg else ("glue:GetPartition", "glue:GetPartitions"))]
    return [
        *([allow("ReadCatalog", _CATALOG[:1], [arns.glue("catalog")])] if spec.iceberg else []),
        allow("ReadTables", actions, _make_resources(arns, _list_table_paths(spec))),
        # A partition that a late call has dropped is added again.
        *_allow_undo(spec, arns, "glue:BatchCreatePartition"),
    ]


def allow_vendor(
    spec: Spec, deployment: Deployment, arns: Arns, reach: Reach, policy: VendorPolicy | None
) -> list[Statement]:
    """Allow a vendor its document's list of actions on its own databases and tables, and deny it the job's.

    The format of the file's tables says nothing of the vendor's, so the list is the whole document's.
    """
    paths = reach.catalog
    if not paths:
        return deny_what_is_the_jobs(arns, reach)
    functions = [path.replace("table/", "userDefinedFunction/") for path in paths if path.startswith("table/")]
    reset = allow("ResetTables", _RESET, _make_resources(arns, [*paths, *functions]))
    return [
        allow("ReadCatalog", _list_catalog_actions(policy), [arns.glue("catalog")]),
        allow("WriteTables", [*_VENDOR, *_VENDOR_PARTITION], _make_resources(arns, paths)),
        *([reset] if deployment.allow_reset else []),
        *deny_what_is_the_jobs(arns, reach),
        *_allow_data_access(deployment),
    ]


def _list_catalog_actions(policy: VendorPolicy | None) -> list[str]:
    """List the actions on the catalog alone: those of a document with any, or those that engines call."""
    documented = policy.glue if policy else ()
    listed = [action for part in documented if part.targets == (Target.CATALOG,) for action in part.actions]
    return listed or [*_CATALOG, _IMPORTED]


def allow_key(deployment: Deployment, *, is_asked: bool) -> list[Statement]:
    """Allow a role that asks the Data Catalog the key of its metadata, through Glue only: Glue uses it as its caller.

    https://docs.aws.amazon.com/glue/latest/dg/set-up-encryption.html
    """
    key = deployment.catalog_kms_key_arn
    if key is None or not is_asked:
        return []
    through_glue = {"StringEquals": {"kms:ViaService": name_services(["glue"], key.split(":")[3])}}
    return [allow("UseKeyOfCatalog", KEY_ACTIONS, [key], through_glue)]


def deny_what_is_the_jobs(arns: Arns, reach: Reach) -> list[Statement]:
    """Deny changing the job's tables and their partitions, and its databases.

    Glue asks for each table of a call, and for its database: what is denied on a table is denied however it is named.
    https://docs.aws.amazon.com/glue/latest/dg/glue-specifying-resource-arns.html
    """
    databases = [path for path in reach.job_catalog if path.startswith("database/")]
    tables = [path for path in reach.job_catalog if path.startswith("table/")]
    if not tables:
        return []
    return [
        deny("KeepOutOfJobTables", _CHANGE, list(map(arns.glue, tables))),
        deny("KeepOutOfJobDatabases", _CHANGE_DATABASE, list(map(arns.glue, databases))),
    ]


def allow_reader(spec: Spec, deployment: Deployment, arns: Arns, party: Party) -> list[Statement]:
    """Allow looking up the tables and partitions that the party reaches."""
    paths = find_reach(spec, party).catalog
    if not paths:
        return []
    return [allow("ReadTables", _READ, _make_resources(arns, paths)), *_allow_data_access(deployment)]


def bound_catalog(spec: Spec, deployment: Deployment, arns: Arns, *, exact: bool) -> list[Statement]:
    """Bound what the roles do in the catalog; ``exact`` names each party's databases, and the catalogs of two accounts
    apart."""
    if not spec.in_glue:
        return []
    paths = _list_bound_paths(spec, deployment, exact=exact)
    catalogs = _list_catalogs(deployment, arns, exact=exact)
    return [allow("Catalog", _BOUND, [catalog.glue(path) for catalog in catalogs for path in paths])]


def _list_catalogs(deployment: Deployment, arns: Arns, *, exact: bool) -> list[Arns]:
    """List the catalogs of the tables and of vendors, whose calls reach that of this account; without room for both,
    the same databases of any account that lets a role in."""
    writes = any(party.access == "write" for _, party in deployment.parties)
    if arns.catalog is None or not writes:
        return [arns]
    return [arns, replace(arns, catalog=None)] if exact else [replace(arns, catalog="*")]


def _list_bound_paths(spec: Spec, deployment: Deployment, *, exact: bool) -> list[str]:
    """List what the file's tables and the parties reach in the catalog, by databases."""
    paths = [path for _, party in deployment.parties for path in find_reach(spec, party).catalog] if exact else []
    databases = {path.split("/")[1] for path in paths} | {escape(table.schema_name) for table in spec.tables}
    prefix = [escape(spec.database_prefix), f"{escape(spec.databases_below)}*"] if spec.database_prefix else []
    listed = [*prefix, *sorted(name for name in databases if not prefix or name not in prefix)]
    below = [f"{kind}/{name}/*" for name in listed for kind in ("table", "userDefinedFunction")]
    return ["catalog", *(f"database/{name}" for name in listed), *below]


def _allow_data_access(deployment: Deployment) -> list[Statement]:
    """Allow asking Lake Formation for data access: the action takes no resources, grants there name the tables."""
    return [allow("AskLakeFormation", ["lakeformation:GetDataAccess"], ["*"])] if deployment.lake_formation else []


def list_own_paths(spec: Spec) -> list[str]:
    """List the catalog, the file's databases and all that is in them, as the deletion of a database asks for them."""
    databases = list(list_databases(spec))
    below = [f"{kind}/{name}/*" for name in databases for kind in ("table", "userDefinedFunction")]
    return ["catalog", *(f"database/{name}" for name in databases), *below]


def _make_resources(arns: Arns, paths: Sequence[str]) -> list[str]:
    return [arns.glue("catalog"), *map(arns.glue, paths)]


def _list_table_paths(spec: Spec) -> list[str]:
    """List exactly the file's tables; if they do not fit into a policy, all tables of each database."""
    exact = list_table_names(spec)
    databases = list(list_databases(spec))
    named = [f"database/{name}" for name in databases]
    checked = [f"table/{name}/{CHECK_TABLE}*" for name in databases]
    every = [f"table/{name}/*" for name in databases]
    choices = ([*named, *exact, *checked], [*named, *every])
    fitting = (paths for paths in choices if sum(len(path) + _ARN for path in paths) <= _BUDGET)
    return next(fitting, list_prefix_paths(spec))
