"""Follow a load: one run for the load as a whole, and one for each table that it begins, below it."""

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Final

from lakewriter.aws import find_account
from lakewriter.column_types import name_type
from lakewriter.lineage.facts import Column, Dataset, EventType, Moment, Output, Run, Statistics
from lakewriter.lineage.follower import End, Follower
from lakewriter.lineage.inputs import is_plain, list_inputs, name_path
from lakewriter.lineage.sender import Sender, get_sender
from lakewriter.naming import DELETED
from lakewriter.records.actions import CatalogAction
from lakewriter.report import TableResult
from lakewriter.shape.envelope import EnvelopePlan
from lakewriter.shape.flatten_plan import FlattenPlan
from lakewriter.shape.shapers import AnyPlan
from lakewriter.shape.table import ColumnPlan
from lakewriter.shape.text_rows import TextRowsPlan
from lakewriter.spec.lineage import Lineage
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

FindAccount = Callable[[], str | None]
"""The number of the account whose Glue Data Catalog is written; None where it cannot be found."""


LOG: Final = logging.getLogger(__name__)

_USER_INFO: Final = re.compile(r"(\w+://)[^\s/'\"]*:[^\s/'\"]*@")
_TYPES: Final[dict[End, EventType]] = {"done": "COMPLETE", "failed": "FAIL", "stopped": "ABORT"}


def follow_load(spec: Spec, *, job_id: str, attempt: str, started: datetime) -> Follower:
    """Return the follower of an attempt at a load; it does nothing where lake.yaml has no ``lineage``."""
    if spec.lineage is None:
        return Follower()
    sender = open_sender(spec.lineage)
    run = Run(
        started,
        f"{spec.pipeline}/{job_id}/{attempt}",
        spec.lineage.namespace,
        spec.pipeline,
        "LOAD",
        nominal_time=spec.lineage.nominal_time,
    )
    return LoadFollower(spec, run, sender)


def open_sender(settings: Lineage) -> Sender:
    """Return the process's sender of a pipeline."""
    return get_sender(settings.model_copy(update={"nominal_time": None}))


@dataclass(frozen=True)
class TableFacts:
    """A table's run, and what is known of its data by now."""

    table: TableSpec
    moment: Moment

    def make_moment(self, kind: EventType, **facts: object) -> Moment:
        """Return an event of the current time."""
        return replace(self.moment, type=kind, at=read_clock(), **facts)  # type: ignore[arg-type]

    def at_version(self, version: str | None) -> "TableFacts":
        """Return the facts of the table at this version."""
        output = self.moment.output
        if output is None:
            return self
        return replace(self, moment=replace(self.moment, output=replace(output, version=version)))


def read_clock() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


def start_table(spec: Spec, table: TableSpec, run: Run, find: FindAccount) -> TableFacts:
    """Return the facts of a table that the file gives."""
    output = _name_output(spec, table, find)
    return TableFacts(table, Moment("START", read_clock(), run, list_inputs(spec, table), output=output))


def describe_table(
    spec: Spec, facts: TableFacts, plan: AnyPlan, action: CatalogAction, find: FindAccount
) -> TableFacts:
    """Return the facts with the table's columns. SQL does not show which field a column comes from."""
    fields: tuple[Column, ...] = ()
    output: Output = _describe_output(spec, facts.table, plan, action, find)
    if is_plain(facts.table):
        fields = describe_source(plan)
    else:
        output = replace(output, columns=tuple(replace(column, sources=()) for column in output.columns))
    return replace(facts, moment=replace(facts.moment, fields=fields, output=output))


def make_account_finder(spec: Spec) -> FindAccount:
    """Return a function that finds the account of the destination's credentials once; the sending thread calls it."""
    return cache(partial(find_account, spec.access))


def redact(error: BaseException) -> str:
    """Return an error's text to print, without the password of a URL, though no message of ours has one."""
    return _USER_INFO.sub(r"\1***@", str(error) or type(error).__name__)


class LoadFollower(Follower):
    """Follows one attempt. Where nothing is loaded, since all tables are done, nothing is sent."""

    def __init__(self, spec: Spec, run: Run, sender: Sender) -> None:
        self._spec, self._run, self._sender = spec, run, sender
        self._find_account = make_account_finder(spec)
        self._tables = {table.id: table for table in spec.tables}
        self._open: dict[str, TableFacts] = {}
        self._ended: set[str] = set()
        self._lock = threading.Lock()
        self._is_begun = False
        self._error: str | None = None

    def start(self, table: TableSpec, /) -> None:
        """See ``Follower``."""
        self._guard(lambda: self._start(table))

    def describe(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """See ``Follower``."""

        def describe() -> None:
            facts = self._open[table.id]
            self._open[table.id] = describe_table(self._spec, facts, plan, action, self._find_account)

        self._guard(describe)

    def resume(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """See ``Follower``."""

        def resume() -> None:
            self._is_begun = True
            self._open[table.id] = self._open_table(table)

        self._guard(resume)
        self.describe(table, plan, action)

    def commit(self, table: TableSpec, version: str | None, /) -> None:
        """See ``Follower``."""

        def commit() -> None:
            self._open[table.id] = self._open[table.id].at_version(version)

        self._guard(commit)

    def flush(self) -> None:
        """See ``Follower``."""
        self._sender.drain()

    def end(self, result: TableResult, error: BaseException | None, /) -> None:
        """See ``Follower``."""
        self._guard(lambda: self._end(result, error))

    def close(self, end: End, /) -> tuple[str, ...]:
        """See ``Follower``."""
        self._guard(lambda: self._close(end))
        self._sender.drain()
        return self._sender.problems

    def _start(self, table: TableSpec) -> None:
        with self._lock:
            if not self._is_begun:
                self._is_begun = True
                self._sender.put(Moment("START", read_clock(), self._run))
        facts = self._open[table.id] = self._open_table(table)
        self._sender.put(facts.moment)

    def _open_table(self, table: TableSpec) -> TableFacts:
        run = replace(
            self._run,
            identity=f"{self._run.identity}/{table.id}",
            job=f"{self._run.job}.{table.id}",
            kind="TABLE",
            parent=self._run,
        )
        return start_table(self._spec, table, run, self._find_account)

    def _end(self, result: TableResult, error: BaseException | None) -> None:
        name = result.id
        if name in self._ended:
            return
        self._ended.add(name)
        if error is not None and name not in self._open:
            # It failed before it could register.
            self._start(self._tables[name])
        facts = self._open.pop(name, None)
        if facts is None:
            return
        if error is not None:
            self._error = self._error or redact(error)
            self._sender.put(facts.make_moment("FAIL", error=redact(error)))
        elif result.status == "done":
            statistics = Statistics(result.rows, result.bytes, result.files)
            self._sender.put(facts.make_moment("COMPLETE", statistics=statistics))
        else:
            # It was stopped, or another attempt at the same load overtook this one and reports it.
            self._sender.put(facts.make_moment("ABORT"))

    def _close(self, end: End) -> None:
        for facts in self._open.values():
            self._sender.put(facts.make_moment(_TYPES[end]))
        self._open = {}
        if self._is_begun:
            self._sender.put(Moment(_TYPES[end], read_clock(), self._run, error=self._error))

    def _guard(self, call: Callable[[], None]) -> None:
        """Make a call, and log its fault instead of ending the load."""
        try:
            call()
        except Exception:
            LOG.exception("The lineage of %s met a fault of the program.", self._run.identity)


def _name_output(spec: Spec, table: TableSpec, find_account: FindAccount) -> Output | None:
    """Return the table before its load; None where the catalog decides its location."""
    if spec.service is not None and spec.service.chooses_location:
        return None
    dataset = name_path(spec.table_location(table))
    assert dataset is not None
    find_symlink = partial(_name_in_glue, spec, table.schema_name, table.name, find_account)
    return Output(
        dataset,
        find_symlink if spec.in_glue else None,
        is_iceberg=spec.iceberg,
        is_replaced=not table.mode.brings_changes,
    )


def _describe_output(
    spec: Spec, table: TableSpec, plan: AnyPlan, action: CatalogAction, find_account: FindAccount
) -> Output:
    """Return the table with its columns, as the load writes it."""
    columns = describe_columns(plan, in_catalog=action.name is not None)
    if action.partition_column is not None:
        columns = (*columns, Column(action.partition_column, "string"))
    location = action.find_location()
    dataset = name_path(spec.table_location(table) if location is None else location)
    assert dataset is not None
    find_symlink = _make_symlink_finder(spec, action, find_account)
    return Output(dataset, find_symlink, columns, spec.iceberg, not table.mode.brings_changes)


def _make_symlink_finder(
    spec: Spec, action: CatalogAction, find_account: FindAccount
) -> Callable[[], Dataset | None] | None:
    """Return a function that finds the table's name in the catalog; None without a catalog."""
    if action.name is None:
        return None
    database, table = action.name
    if action.server is not None:
        named = Dataset(action.server.rstrip("/"), f"{database}.{table}")
        return lambda: named
    return partial(_name_in_glue, spec, database, table, find_account)


def _name_in_glue(spec: Spec, database: str, table: str, find_account: FindAccount) -> Dataset | None:
    account = find_account()
    if account is None:
        return None
    return Dataset(f"arn:aws:glue:{spec.access.region}:{account}", f"table/{database}/{table}")


Origin = tuple[str, tuple[str, ...], bool]
"""A column, the source's fields that its values come from, and whether they are their values as they are."""


def describe_columns(plan: AnyPlan, *, in_catalog: bool) -> tuple[Column, ...]:
    """Return the columns that are written. Columns that the load adds have no source."""
    origins = {name: (fields, is_identity) for name, fields, is_identity in _list_origins(plan)}
    columns = []
    for field in plan.schema:
        sources, is_identity = origins.get(field.name, ((), True))
        columns.append(Column(field.name, name_type(field.type, is_exact=not in_catalog), sources, is_identity))
    return tuple(columns)


def describe_source(plan: AnyPlan) -> tuple[Column, ...]:
    """Return the source's fields; of documents, the fields that have columns."""
    if isinstance(plan, EnvelopePlan) and plan.rows is None:
        return tuple(Column(name, None) for name in _list_properties(plan))
    rows = plan.rows if isinstance(plan, EnvelopePlan | TextRowsPlan) else plan
    assert rows is not None
    fields = (field for field in rows.source_schema if field.name != DELETED)
    return tuple(Column(field.name, name_type(field.type)) for field in fields)


def _list_origins(plan: AnyPlan) -> Iterable[Origin]:
    if isinstance(plan, FlattenPlan):
        return _list_document_origins(plan)
    if isinstance(plan, EnvelopePlan):
        return _list_record_origins(plan)
    return _list_row_origins(plan.columns)


def _list_row_origins(columns: Iterable[ColumnPlan]) -> Iterator[Origin]:
    for column in columns:
        yield column.name, (column.source,), not column.casts


def _list_record_origins(plan: EnvelopePlan) -> Iterable[Origin]:
    if plan.envelope.data is not None:
        # One column holds the whole record, as JSON text.
        names = tuple(column.source for column in plan.columns)
        return [(plan.envelope.data, names, False)]
    if plan.rows is not None:
        return _list_row_origins(plan.columns)
    named = zip(plan.fields, _list_properties(plan), strict=True)
    return [(field.name, (name,), True) for field, name in named]


def _list_properties(plan: EnvelopePlan) -> tuple[str, ...]:
    """Return the properties of a record that have columns, in the order of the columns."""
    return plan.properties or () if plan.record is None else tuple(name for name, _ in plan.record.fields)


def _list_document_origins(plan: FlattenPlan) -> Iterator[Origin]:
    for field in plan.fields:
        # Documents may be JSON text in one column, out of which their values are taken.
        inside = () if plan.documents is None else (plan.source_schema.field(plan.documents).name,)
        yield field.name, (".".join((*inside, *field.path)),), not inside
