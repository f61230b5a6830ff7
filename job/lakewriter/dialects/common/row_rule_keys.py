"""The keys ``contract`` and ``on_bad_row``: for a table, and as a default for all of a pipeline's."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field, model_validator

from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.source_files import Location
from lakewriter.errors import NameCollisionError
from lakewriter.spec.model import FileModel
from lakewriter.spec.row_rules import SHARE, BadRows, Contract
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Read, TableSpec


class ContractEntry(FileModel):
    """What happens when columns or types change in the source. A table takes the pipeline's value of a key that it
    leaves out."""

    columns: Literal["evolve", "freeze", "discard"] | None = None
    """What happens to a new column: ``evolve`` adds it (the default), ``freeze`` fails the load, ``discard`` leaves it
    out and counts it."""
    types: Literal["evolve", "freeze"] | None = None
    """What happens to a type that grows without loss: ``evolve`` widens the column (the default), ``freeze`` fails the
    load."""

    def fill_from(self, default: "ContractEntry") -> "ContractEntry":
        """Return this entry, with the default's values where it has none."""
        return ContractEntry(columns=self.columns or default.columns, types=self.types or default.types)

    @property
    def contract(self) -> Contract | None:
        """The neutral form; None where the file says nothing."""
        given = {key: value for key, value in self.model_dump().items() if value is not None}
        return Contract.model_validate(given) if given else None


def _allow_bare_action(schema: dict[str, Any]) -> None:
    whole = dict(schema)
    schema.clear()
    schema["anyOf"] = [{"enum": ["fail", "quarantine"]}, whole]


class BadRowEntry(FileModel):
    """What becomes of a row that cannot be loaded; the action alone may stand in its place."""

    model_config = ConfigDict(json_schema_extra=_allow_bare_action)

    action: Literal["fail", "quarantine"]
    """``fail`` ends the table's load. ``quarantine`` writes the row, with what is wrong with it, into a table of its
    own, ``{table}__quarantine``, and goes on."""
    at_most: float | None = Field(None, ge=0, le=1)
    """For ``quarantine``: the share of such rows, from 0 to 1, above which the load fails after all. By default
    0.001."""

    @model_validator(mode="before")
    @classmethod
    def _action_alone(cls, value: Any) -> Any:
        return {"action": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _share_of_the_quarantine(self) -> "BadRowEntry":
        if self.at_most is not None and self.action == "fail":
            raise ValueError("'at_most' is only for the action 'quarantine'")
        return self

    @property
    def bad_rows(self) -> BadRows:
        """The neutral form."""
        return BadRows(action=self.action, at_most=SHARE if self.at_most is None else self.at_most)


def refuse_unsupported(spec: Spec, data: Mapping[str, Any]) -> None:
    """Raise ``SPEC_INVALID`` for a rule that a table cannot keep: none is ignored silently. ``data`` is the file's."""
    for number, table in enumerate(spec.tables):
        for rule, value, why in _list_unsupported(table, in_catalog=spec.iceberg or spec.in_glue):
            raise FaultError(
                _locate_rule(data, number, rule),
                f"table {table.source_table!r} has {rule}: {value}, which cannot be kept {why}.",
                remedy=f"Leave it out; {_DEFAULTS[rule.partition('.')[0]]}",
            )


def refuse_shared_quarantines(spec: Spec, data: Mapping[str, Any]) -> None:
    """Raise ``NAME_COLLISION`` for a quarantine that another table's readers would see, or whose readers would see
    another table or quarantine."""
    numbers = [number for number, table in enumerate(spec.tables) if table.quarantine is not None]
    if not numbers:
        return
    tables_by_path = {path: table.source_table for table in spec.tables for path in _list_places(table)}
    quarantines = {f"{spec.tables[number].quarantine}/": number for number in numbers}
    for number, table in enumerate(spec.tables):
        for path in _list_places(table):
            starts = [path[:length] for length in range(len(path) + 1)]
            inner = [quarantines[start] for start in starts if quarantines.get(start, number) != number]
            if inner:
                raise _make_shared_error(data, inner[0], spec.tables[inner[0]], table.source_table)
            outer = [tables_by_path[start] for start in starts[:-1] if start in tables_by_path]
            if path in quarantines and outer:
                raise _make_shared_error(data, number, table, outer[0])


def _list_places(table: TableSpec) -> tuple[str, ...]:
    """List the beginnings of the keys of a table and of its quarantine."""
    return (table.layout.prefix, *([f"{table.quarantine}/"] if table.quarantine is not None else []))


def _make_shared_error(data: Mapping[str, Any], number: int, table: TableSpec, other: str) -> FaultError:
    return FaultError(
        _locate_rule(data, number, "on_bad_row"),
        f"the bad rows of table {table.source_table!r} would lie in {table.quarantine!r}, which table {other!r} has.",
        remedy="Give each table a folder of its own, or leave on_bad_row out.",
        kind=NameCollisionError,
    )


def _locate_rule(data: Mapping[str, Any], number: int, rule: str) -> Location:
    """Return the location of a table's rule: in its own entry, or at the top for all tables."""
    keys = tuple(rule.split("."))
    tables = data.get("tables") or ()
    entry: Any = tables[number] if number < len(tables) else None
    for key in keys:
        entry = entry.get(key) if isinstance(entry, Mapping) else None
    return keys if entry is None else ("tables", number, *keys)


_DEFAULTS: Final = {
    "contract": "columns that the source adds are then added, and types that grow without loss widen.",
    "on_bad_row": "a row that cannot be read then fails the load, or is treated as the destination's guide says.",
}


def _list_unsupported(table: TableSpec, *, in_catalog: bool) -> list[tuple[str, str, str]]:
    """Return the rule, its value, and why it cannot be kept."""
    unsupported: list[tuple[str, str, str]] = []
    collection = table.collection
    is_inferred = collection is not None and collection.column is not None and collection.locations is None
    if table.contract is not None and not in_catalog and not is_inferred:
        given = {"columns": table.contract.columns, "types": table.contract.types}
        why = "where no catalog has the table's columns"
        unsupported += [(f"contract.{key}", value, why) for key, value in given.items() if value != "evolve"]
    if table.on_bad_row is not None and table.sets_aside and (why := _explain_unmarkable(table)):
        unsupported.append(("on_bad_row", table.on_bad_row.action, why))
    if table.on_bad_row is not None and table.on_bad_row.action == "fail" and table.stream:
        unsupported.append(("on_bad_row", "fail", "for messages"))
    return unsupported


def _explain_unmarkable(table: TableSpec) -> str:
    """Say why bad rows of the source cannot be told apart from the others; blank if they can."""
    if table.stream is not None:
        return ""
    return _explain_unmarkable_read(table.read, "")


def _explain_unmarkable_read(read: Read, of: str) -> str:
    for view in read.views.values():
        if why := _explain_unmarkable_read(view, "an sql: read of "):
            return why
    form = read.kind
    if not form.is_text:
        return ""
    if not form.has_lines:
        return f"for {of}{form.name} files"
    if read.engine is not None:
        where = f"for {of}{form.name} files " if of else ""
        return f"{where}with engine: spark, whose reader does not find bad rows"
    return ""
