"""Set what ``maintenance`` asks for on an Iceberg table: properties for the tool that expires its snapshots, and what
the catalog does by itself: Glue's optimizers, or the upkeep of Amazon S3 Tables.

https://docs.aws.amazon.com/glue/latest/dg/table-optimizers.html
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from pyiceberg.table import Table

from lakewriter import aws
from lakewriter.commit.iceberg.iceberg_tables import IcebergTable
from lakewriter.commit.iceberg.s3_tables_upkeep import TableService, make_snapshot_settings
from lakewriter.errors import LakeError
from lakewriter.records.actions import IcebergAction
from lakewriter.spec.maintenance import Maintenance

MARK: Final = "lakewriter-maintenance"
"""The table property that holds the last settings of the catalog's upkeep: a load repeats no request for those that it
finds there. No pipeline's own property has this name."""

_DAY: Final = 86_400_000
_MAX_AGE: Final = "history.expire.max-snapshot-age-ms"
_MIN_KEPT: Final = "history.expire.min-snapshots-to-keep"
"""https://iceberg.apache.org/docs/latest/configuration/#table-behavior-properties"""


def make_properties(maintenance: Maintenance) -> dict[str, str]:
    """Make the table properties by which Iceberg's procedures, and Glue, expire snapshots."""
    if maintenance.expire_snapshots_days is None:
        return {}
    days = maintenance.expire_snapshots_days
    return {_MAX_AGE: str(int(days * _DAY)), _MIN_KEPT: str(maintenance.keep_snapshots)}


def make_configurations(maintenance: Maintenance) -> dict[str, dict[str, Any]]:
    """Make the configuration of each of Glue's optimizers that is wanted, by its type, without the role."""
    if maintenance.optimizer_role is None:
        return {}
    made: dict[str, dict[str, Any]] = {}
    if maintenance.expire_snapshots_days is not None:
        retention = {
            "snapshotRetentionPeriodInDays": int(maintenance.expire_snapshots_days),
            "numberOfSnapshotsToRetain": maintenance.keep_snapshots,
            "cleanExpiredFiles": True,
        }
        made["retention"] = {"retentionConfiguration": {"icebergConfiguration": retention}}
    if maintenance.compact and maintenance.by == "glue":
        made["compaction"] = {}
    if maintenance.delete_orphans_days is not None:
        days = {"orphanFileRetentionPeriodInDays": maintenance.delete_orphans_days}
        made["orphan_file_deletion"] = {"orphanFileDeletionConfiguration": {"icebergConfiguration": days}}
    return made


SET_AGAIN: Final = f"Remove the table's property {MARK!r}: the next load sets its upkeep again."


def find_faults(optimizers: "Optimizers", maintenance: Maintenance) -> Iterator[tuple[str, str]]:
    """Yield each fault of a wanted optimizer, with its remedy: it is missing, differs from ``maintenance``, or has
    failed."""
    for kind, wanted in make_configurations(maintenance).items():
        configured = optimizers.find(kind)
        if configured is None:
            yield f"Glue has no optimizer to {optimizers.purposes[kind]} ({kind}).", SET_AGAIN
            continue
        configuration, run = configured.get("configuration", {}), configured.get("lastRun", {})
        whole = {"roleArn": optimizers.role, "enabled": True, **wanted}
        if not _is_within(whole, configuration):
            shown, expected = (
                json.dumps(part, sort_keys=True) for part in ({key: configuration.get(key) for key in whole}, whole)
            )
            yield f"Glue's optimizer {kind} was changed: it is {shown}, expected {expected}.", SET_AGAIN
        if run.get("eventType") == "failed":
            why = run.get("error", "no reason is given")
            logs = f"/aws-glue/iceberg-{kind.replace('_', '-')}/logs"
            yield (
                f"Glue's optimizer {kind} failed at {run.get('endTimestamp')}: {why}.",
                f"Look into CloudWatch's {logs}. Its role needs what 'lakewriter policy LAKE --who optimizer' prints.",
            )


def _is_within(wanted: Any, actual: Any) -> bool:
    """Return whether Glue's answer contains all wanted values; it also has defaults."""
    if isinstance(wanted, dict) and isinstance(actual, dict):
        return all(_is_within(value, actual.get(key)) for key, value in wanted.items())
    return bool(wanted == actual)


class Upkeep:
    """The maintenance that is wanted of one table; what the catalog does not take stops no load."""

    def __init__(self, maintenance: Maintenance, table: IcebergTable, clients: aws.Clients) -> None:
        self._maintenance = maintenance
        self._table = table
        self._clients = clients
        in_table_bucket = table.action.service.table_bucket is not None
        self._keeper: type[Optimizers | TableService] = TableService if in_table_bucket else Optimizers
        self._configurations = (
            make_snapshot_settings(maintenance) if in_table_bucket else make_configurations(maintenance)
        )

    def describe(self, table: Table | None) -> list[str]:
        """Say what ``keep`` would change, a phrase for each."""
        name, properties = self._table.name, table.properties if table else {}
        wanted = make_properties(self._maintenance)
        changes = [f"set {key}={value} of {name}" for key, value in wanted.items() if properties.get(key) != value]
        if self._is_told(properties):
            return changes
        noted = read_told(properties)
        keeper = self._keeper
        changes += [f"let {keeper.name} {keeper.purposes[kind]} of {name}" for kind in self._configurations]
        return changes + [
            f"stop {keeper.name}'s {kind} of {name}" for kind in noted if kind not in self._configurations
        ]

    def keep(self, table: Table) -> Table:
        """Configure what the catalog does and set the properties, unless the table shows that this is done; return the
        table."""
        wanted = make_properties(self._maintenance)
        # Before the properties: S3 Tables expires nothing of a table whose own are longer than its settings.
        if not self._is_told(table.properties) and self._tell_keeper(read_told(table.properties)):
            wanted[MARK] = self._mark

        def is_kept(seen: Table) -> bool:
            return wanted.items() <= seen.properties.items()

        def set_properties(seen: Table) -> None:
            with seen.transaction() as transaction:
                transaction.set_properties(wanted)

        return self._table.change(table, is_kept, set_properties)

    @property
    def _mark(self) -> str:
        mark = {"role": self._maintenance.optimizer_role, "optimizers": self._configurations}
        return json.dumps(mark, sort_keys=True, separators=(",", ":"))

    def _is_told(self, properties: Mapping[str, str]) -> bool:
        return not self._configurations or properties.get(MARK) == self._mark

    def _tell_keeper(self, noted: Mapping[str, Any]) -> bool:
        """Set each configuration that is wanted, and delete those that are not any more; False, with a sentence in the
        report, where the catalog refuses one: the next load tries again."""
        try:
            keeper = self._keeper(self._clients, self._table.action, self._maintenance)
            for kind, configuration in self._configurations.items():
                keeper.put(kind, configuration)
            for kind in noted.keys() - self._configurations.keys() & keeper.purposes.keys():
                keeper.delete(kind)
        except LakeError as error:
            self._table.left.append(f"{self._keeper.failure.format(self._table.name)}: {error}")
            return False
        return True


class Optimizers:
    """Glue's optimizers of one table, configured with the destination's credentials."""

    name: ClassVar[str] = "Glue"
    purposes: ClassVar[Mapping[str, str]] = {
        "retention": "expire snapshots",
        "compaction": "compact small files",
        "orphan_file_deletion": "delete orphan files",
    }
    failure: ClassVar[str] = "Glue's optimizers of {} are not as 'maintenance' has them"

    def __init__(self, clients: aws.Clients, action: IcebergAction, maintenance: Maintenance) -> None:
        self._clients = clients
        self._where: dict[str, str] = {"DatabaseName": action.namespace, "TableName": action.table}
        identity = self._ask("sts:GetCallerIdentity", lambda: clients.sts.get_caller_identity())
        self._where["CatalogId"] = identity["Account"]
        self.role = maintenance.find_role_arn(identity["Arn"].split(":")[1], identity["Account"])

    def put(self, kind: str, configuration: Mapping[str, Any]) -> None:
        """Create the optimizer, or change it to this configuration where there is one."""
        glue, whole = self._clients.glue, {"roleArn": self.role, "enabled": True, **configuration}
        arguments: dict[str, Any] = {**self._where, "Type": kind, "TableOptimizerConfiguration": whole}
        created = self._ask(
            "glue:CreateTableOptimizer", lambda: glue.create_table_optimizer(**arguments), "AlreadyExistsException"
        )
        if created is None:
            self._ask("glue:UpdateTableOptimizer", lambda: glue.update_table_optimizer(**arguments))

    def delete(self, kind: str) -> None:
        """Delete the optimizer; nothing to do where there is none."""
        glue, absent = self._clients.glue, "EntityNotFoundException"
        self._ask("glue:DeleteTableOptimizer", lambda: glue.delete_table_optimizer(**self._where, Type=kind), absent)

    def find(self, kind: str) -> dict[str, Any] | None:
        """Return the optimizer as Glue has it, with its last run; None where there is none."""
        glue, absent = self._clients.glue, "EntityNotFoundException"
        answer = self._ask("glue:GetTableOptimizer", lambda: glue.get_table_optimizer(**self._where, Type=kind), absent)
        return dict(answer["TableOptimizer"]) if answer else None

    def _ask(self, doing: str, request: Callable[[], Any], *absent: str) -> Any:
        doing = f"{doing} on {self._where['DatabaseName']}.{self._where['TableName']}"
        return aws.ask(request, doing=doing, access=self._clients.access, absent=absent)


def read_told(properties: Mapping[str, str]) -> dict[str, Any]:
    """Read the last settings of the optimizers, by their types; empty where there are none."""
    try:
        noted = json.loads(properties.get(MARK, "{}")).get("optimizers", {})
    except (ValueError, AttributeError):
        return {}
    return noted if isinstance(noted, dict) else {}
