"""Publish a load in a Hive-style Parquet table of the Glue Data Catalog, and read it back."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import NoneType
from typing import Any, ClassVar, Final, Literal, TypeVar

from lakewriter import aws
from lakewriter.commit.backoff import Backoff
from lakewriter.commit.change_count import CountedChanges, name_count_property, read_count
from lakewriter.commit.glue_table import (
    FORMAT,
    Columns,
    check_layout,
    compare_partition,
    compare_table,
    describe_differences,
    keep_descriptions,
    make_projection,
    make_table_input,
    merge_columns,
    read_columns,
    read_projected_start,
    to_column_inputs,
)
from lakewriter.commit.mismatch import Comparison, Kind, Mismatch
from lakewriter.errors import CommitUnknownError, SchemaIncompatibleError
from lakewriter.naming import LOAD_METADATA
from lakewriter.records.actions import GlueAction
from lakewriter.records.changes import Intent, require_able
from lakewriter.records.facets import UndoneLoad
from lakewriter.records.state import GivenUp

CHANGE_SECONDS: Final = 120.0
"""For how long a change is tried again while other writers come first."""

_UPDATED_FIELDS: Final = (
    "Name", "Description", "Owner", "Retention", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters",
)  # fmt: skip
"""The fields of GetTable's answer that UpdateTable accepts."""
_CONFLICTS: Final = ("ConcurrentModificationException", "ResourceNotReadyException")
_LATE: Final = ("AlreadyExistsException", *_CONFLICTS)
"""Error codes that mean that another writer is creating, or has created, the same thing or one beside it."""

_GIVEN_UP: Final = "given up: "
"""Prefix of a load's name in a table's parameters: the load's change was given up."""

T = TypeVar("T")


class GlueTables:
    """Glue, called with the destination's credentials; every call may be repeated.

    ``is_pending`` asks whether the change to publish is still the table's pending one; it raises ``COMMIT_UNKNOWN``
    where another pipeline has taken over what the change would switch.
    """

    version: ClassVar[None] = None
    counts: ClassVar[None] = None

    def __init__(self, clients: aws.Clients, is_pending: Callable[[], bool] = lambda: True) -> None:
        self._clients = clients
        self._is_pending = is_pending

    def read_columns(self, action: GlueAction) -> dict[str, str]:
        """Return Glue types by column name, empty where there is no table; ``SCHEMA_INCOMPATIBLE`` for a table with
        another layout."""
        table = self._find_table(action)
        if table is None:
            return {}
        check_layout(table, action)
        return dict(read_columns(table))

    def note_deleted_keys(self, intent: Intent) -> None:
        """Return None: rows are merged in Iceberg tables alone."""

    def publish(self, intent: Intent, number: int) -> None:
        """Create database, table and partition, in this order: a partition is visible once its files are there."""
        action, effects = _require_glue(intent), intent.effects
        require_able(effects, (NoneType, UndoneLoad))
        if effects.generation is not None:
            self._switch(action, intent, number)
        elif effects.adds:
            columns = self._ensure_table(action)
            if action.partition is not None:
                self._ensure_partition(action, columns)
        elif effects.removes is not None and effects.removes.drops_partition:
            self._drop_partition(action)

    def read_back(self, intent: Intent) -> None:
        """Compare columns, types, location and partition with the intent; ``COMMIT_UNKNOWN`` where they differ."""
        action, effects = _require_glue(intent), intent.effects
        if effects.removes is not None and effects.generation is None:
            self._require_dropped(action, effects.removes)
            return
        table = self._find_table(action)
        differences = ["the table is not there"] if table is None else describe_differences(table, action)
        if action.partition is not None and not differences:
            differences = self._compare_partition(action)
        if differences:
            raise CommitUnknownError(
                f"Glue does not show {action.database}.{action.table} as it was written: {'; '.join(differences)}.",
                remedy="Run the same job id again; look for another writer of this table. Or give the load up: "
                f"lakewriter abandon LAKE {intent.job_id} --reason TEXT",
            )

    def decide(self, intent: Intent, number: int) -> bool | None:
        """See ``CatalogWriter``. A missing switch becomes impossible, since its number is used without it. A missing
        partition may still be added by another process."""
        action = _require_glue(intent)
        if intent.effects.generation is not None:
            return self._decide_switch(action, intent, number)
        table = self._find_table(action)
        if table is None or describe_differences(table, action):
            return None
        is_there = action.partition is None or self.find_partition_location(action) == action.partition_location
        return True if is_there else None

    def _decide_switch(self, action: GlueAction, intent: Intent, number: int) -> bool | None:
        """Return whether the table was switched, and use up the number if not. A late process is then refused by the
        table's version, if it has read the table before, or finds the number. Nothing stops a process that is about to
        create the table.
        """
        given_up = {name_count_property(intent.pipeline): str(number), LOAD_METADATA: f"{_GIVEN_UP}{intent.load}"}

        def decide() -> Literal["seen", "not seen", "unknown"] | None:
            table = self._find_table(action)
            if table is None:
                return "unknown"
            last, load = _read_switch(table, intent.pipeline, _name(action))
            if last >= number:
                return "seen" if load == intent.load else "not seen"
            check_layout(table, action)
            columns = {"Columns": table["StorageDescriptor"].get("Columns", [])}
            return "not seen" if self._update(action, table, columns, given_up) else None

        decided = _retry_until_done(f"table {action.database}.{action.table}", decide)
        return None if decided == "unknown" else decided == "seen"

    def clear_up(self, intent: Intent, *, gone: bool) -> tuple[str, ...]:
        """Do nothing: Glue has no files of its own."""
        return ()

    def explain_absence(self, intent: Intent) -> str | None:
        """Return None: a partition may be dropped on purpose, and ``verify`` reports it."""
        return None

    def compare(self, intent: Intent) -> Comparison:
        """See ``CatalogWriter``."""
        action = _require_glue(intent)
        table = self._find_table(action)
        if table is None:
            return Comparison((Mismatch(Kind.TABLE_GONE, f"{_name(action)}: the table is not there in Glue."),))
        mismatches = compare_table(table, action)
        if action.partition is not None:
            partition = self._find_partition(action)
            if partition is None:
                mismatches.append(Mismatch(Kind.PARTITION_GONE, f"partition {action.partition!r} is not there"))
            else:
                mismatches += compare_partition(partition, action)
        return Comparison(
            tuple(replace(mismatch, message=f"{_name(action)}: {mismatch.message}.") for mismatch in mismatches)
        )

    def list_partitions(self, action: GlueAction) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield values and location of every partition of the table."""
        where = {"DatabaseName": action.database, "TableName": action.table, "ExcludeColumnSchema": True}
        token: dict[str, str] | None = {}
        while token is not None:
            page = self._ask("GetPartitions", action, absent=("EntityNotFoundException",), **where, **token) or {}
            for partition in page.get("Partitions", ()):
                yield tuple(partition["Values"]), str(partition.get("StorageDescriptor", {}).get("Location", ""))
            token = {"NextToken": page["NextToken"]} if page.get("NextToken") else None

    def find_last_switch(self, action: GlueAction, pipeline: str) -> CountedChanges:
        """Return the changes of a refreshed table's location, of which the table names the last one."""
        number, load = _read_switch(self._find_table(action) or {}, pipeline, _name(action))
        if load.startswith(_GIVEN_UP):
            return CountedChanges(number, given_up=frozenset({load.removeprefix(_GIVEN_UP)}))
        return CountedChanges(number, frozenset({load} - {""}))

    def find_partition_location(self, action: GlueAction) -> str | None:
        """Return the partition's location in Glue, None where there is no such partition."""
        partition = self._find_partition(action)
        return str(partition.get("StorageDescriptor", {}).get("Location", "")) if partition else None

    def _find_partition(self, action: GlueAction) -> dict[str, Any] | None:
        answer = self._ask(
            "GetPartition",
            action,
            absent=("EntityNotFoundException",),
            DatabaseName=action.database,
            TableName=action.table,
            PartitionValues=[action.partition],
        )
        return answer["Partition"] if answer else None

    def _compare_partition(self, action: GlueAction) -> list[str]:
        location = self.find_partition_location(action)
        if location is None:
            return [f"partition {action.partition!r} is not there"]
        if location.rstrip("/") != str(action.partition_location).rstrip("/"):
            raise SchemaIncompatibleError(
                f"partition {action.partition!r} of Glue table {action.database}.{action.table} lies at {location!r}, "
                f"expected {str(action.partition_location)!r}: queries do not see the files of this load.",
                remedy="Set the partition's location back, or drop the partition: the load then adds it.",
            )
        return []

    def _find_table(self, action: GlueAction) -> dict[str, Any] | None:
        absent = ("EntityNotFoundException",)
        answer = self._ask("GetTable", action, absent=absent, DatabaseName=action.database, Name=action.table)
        return answer["Table"] if answer else None

    def _ensure_database(self, action: GlueAction) -> None:
        name = action.database

        def make_database() -> Any:
            answer = self._ask("GetDatabase", action, absent=("EntityNotFoundException",), Name=name)
            made = {"Name": name, "LocationUri": action.database_location}
            return answer or self._ask("CreateDatabase", action, absent=_LATE, DatabaseInput=made)

        _retry_until_done(f"database {name}", make_database)

    def _ensure_table(self, action: GlueAction) -> Columns:
        name = f"{action.database}.{action.table}"

        def make_table() -> Columns | None:
            existing = self._find_table(action)
            if existing is None:
                self._ensure_database(action)
                made = {"DatabaseName": action.database, "TableInput": make_table_input(action)}
                return action.columns if self._ask("CreateTable", action, absent=_LATE, **made) else None
            check_layout(existing, action)
            merged = merge_columns(name, read_columns(existing), action.columns)
            parameters = self._list_projection_changes(existing, action)
            if merged == read_columns(existing) and not parameters:
                return merged
            columns = {"Columns": to_column_inputs(merged)}
            return merged if self._update(action, existing, columns, parameters or None) else None

        return _retry_until_done(f"table {name}", make_table)

    def _list_projection_changes(self, table: Mapping[str, Any], action: GlueAction) -> dict[str, str]:
        """Return the parameters to set, so that Athena computes the partitions that there are and that of the load."""
        if action.projection is None:
            return {}
        value, start = action.projection.value, read_projected_start(table, action.partition_key)
        if start is None:
            values = (values[0] for values, _ in self.list_partitions(action))
            start = min((other for other in values if len(other) == len(value)), default=value)
        parameters = table.get("Parameters", {})
        wanted = make_projection(action, min(start, value))
        return {name: text for name, text in wanted.items() if parameters.get(name) != text}

    def _switch(self, action: GlueAction, intent: Intent, number: int) -> None:
        """Point the table at the files of another generation, with their columns, in one call.

        The call also stores ``number``: a late process finds there that this change, or a later one, is done.
        """
        counted = {name_count_property(intent.pipeline): str(number), LOAD_METADATA: intent.load}

        def move() -> bool | None:
            table = self._find_table(action)
            if table is None:
                self._require_pending(_name(action))
                self._ensure_database(action)
                made = make_table_input(action)
                made = made | {"Parameters": made["Parameters"] | counted}
                made_in = {"DatabaseName": action.database, "TableInput": made}
                return self._ask("CreateTable", action, absent=_LATE, **made_in) is not None or None
            last, load = _read_switch(table, intent.pipeline, _name(action))
            if last == number and load == f"{_GIVEN_UP}{intent.load}":
                raise GivenUp
            # Rule switch-number
            if last >= number:
                return True
            # After the table was read: a pipeline that takes it over later changes its version.
            # Rule switch-is-due
            self._require_pending(_name(action))
            check_layout(table, action)
            changed = {"Location": action.location, "Columns": to_column_inputs(action.columns)}
            return self._update(action, table, changed, counted) or None

        _retry_until_done(f"table {action.database}.{action.table}", move)

    def _update(
        self,
        action: GlueAction,
        table: Mapping[str, Any],
        storage: Mapping[str, Any],
        parameters: Mapping[str, str] | None = None,
    ) -> bool:
        """Replace these fields of the table's storage descriptor and parameters; False where another writer came
        first."""
        settings = {key: table[key] for key in _UPDATED_FIELDS if key in table}
        described = keep_descriptions(table, storage["Columns"])
        settings["StorageDescriptor"] = settings["StorageDescriptor"] | storage | {"Columns": described}
        if parameters:
            settings["Parameters"] = settings.get("Parameters", {}) | parameters
        answer = self._ask(
            "UpdateTable",
            action,
            absent=(*_CONFLICTS, "VersionMismatchException"),
            DatabaseName=action.database,
            TableInput=settings,
            # Glue would keep a version for every replacement until its limit is reached. Iceberg's own writer skips
            # them, too: https://iceberg.apache.org/docs/latest/aws/#skip-archive
            SkipArchive=parameters is not None,
            # Rule glue-version
            VersionId=table["VersionId"],
        )
        return answer is not None

    def _ensure_partition(self, action: GlueAction, columns: Columns) -> None:
        name = f"partition {action.partition!r} of {action.database}.{action.table}"

        def make_partition() -> Any:
            if self.find_partition_location(action) is not None:
                return True
            # Another process may have ended the load, and an undo may have dropped the partition. Its objects stay for
            # a while, so readers would see them again.
            self._require_pending(name)
            return self._create_partition(action, columns, name)

        _retry_until_done(name, make_partition)

    def _create_partition(self, action: GlueAction, columns: Columns, name: str) -> bool | None:
        """Create the partition; None where another writer came first. ``COMMIT_UNKNOWN`` where Glue refuses it."""
        storage = FORMAT | {"Columns": to_column_inputs(columns), "Location": action.partition_location}
        answer = self._ask(
            "BatchCreatePartition",
            action,
            absent=_CONFLICTS,
            DatabaseName=action.database,
            TableName=action.table,
            PartitionInputList=[{"Values": [action.partition], "StorageDescriptor": storage}],
        )
        if answer is None:
            return None
        for failed in answer.get("Errors", ()):
            detail = failed["ErrorDetail"]
            if detail["ErrorCode"] in _CONFLICTS:
                return None
            if detail["ErrorCode"] != "AlreadyExistsException":
                raise CommitUnknownError(
                    f"Glue did not add {name} ({detail['ErrorCode']}: {detail.get('ErrorMessage', '')}).",
                    remedy="Run the same job id again.",
                )
        return True

    def _drop_partition(self, action: GlueAction) -> None:
        """Drop the partition, which holds only files that an undo takes out; do nothing where it is gone."""
        name = f"partition {action.partition!r} of {_name(action)}"

        def drop() -> Any:
            # Another process may have ended the undo, and a later load have added the partition again.
            self._require_pending(name)
            absent = ("EntityNotFoundException", *_CONFLICTS)
            where = {"DatabaseName": action.database, "TableName": action.table}
            answer = self._ask("DeletePartition", action, absent=absent, PartitionValues=[action.partition], **where)
            return True if answer is not None or self._find_partition(action) is None else None

        _retry_until_done(name, drop)

    def _require_pending(self, name: str) -> None:
        """Raise ``COMMIT_UNKNOWN`` where another process has ended the change, or another pipeline has the table.
        Partitions have no version, so nothing stops a process that sleeps after this check."""
        if not self._is_pending():
            raise CommitUnknownError(
                f"Glue {name} was left as it is: another process has ended this change meanwhile.",
                remedy="Run the same job id again.",
            )

    def _require_dropped(self, action: GlueAction, load: UndoneLoad) -> None:
        if load.drops_partition and self._find_partition(action) is not None:
            raise CommitUnknownError(
                f"Glue still shows partition {action.partition!r} of {action.database}.{action.table}, which the undo "
                f"of load {load.job_id!r} has dropped.",
                remedy="Undo the load again; look for another writer of this table.",
            )

    def _ask(self, action: str, on: GlueAction, *, absent: tuple[str, ...] = (), **arguments: Any) -> Any:
        """Call Glue; return the answer, or None for an error code in ``absent``."""
        method = "".join("_" + c.lower() if c.isupper() else c for c in action).lstrip("_")
        doing = f"glue:{action} on {on.database}.{on.table}"

        def request() -> Any:
            return getattr(self._clients.glue, method)(**arguments)

        return aws.ask(request, doing=doing, access=self._clients.access, absent=absent)


def _retry_until_done(what: str, step: Callable[[], T | None]) -> T:
    """Call ``step`` until its result is not None, and return it; ``COMMIT_UNKNOWN`` after ``CHANGE_SECONDS``."""
    backoff = Backoff(CHANGE_SECONDS)
    while (done := step()) is None:
        if not backoff.wait():
            raise CommitUnknownError(
                f"Glue {what} was changed by others again and again, for {CHANGE_SECONDS:.0f} s.",
                remedy="Run the same job id again.",
            )
    return done


def _read_switch(table: Mapping[str, Any], pipeline: str, name: str) -> tuple[int, str]:
    """Return the number of the last change of a refreshed table's location, and the load that made it."""
    parameters = table.get("Parameters", {})
    return read_count(parameters, pipeline, name), str(parameters.get(LOAD_METADATA, ""))


def _name(action: GlueAction) -> str:
    return f"Glue table {action.database}.{action.table}"


def _require_glue(intent: Intent) -> GlueAction:
    assert isinstance(intent.catalog, GlueAction)
    return intent.catalog
