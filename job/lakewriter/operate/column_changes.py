"""Compare the columns that a load would write with those that readers have now, and say which readers would fail."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from lakewriter.column_types import can_hold, to_arrow_type
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.operate.written_columns import Written
from lakewriter.spec.model import Model
from lakewriter.spec.readers import WHO_NOTICES

Kind = Literal["added", "gone", "renamed", "type", "order"]

_VARIABLE: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+")


class ColumnChange(Model):
    """The change of one column; ``effect`` says what its readers would see, ``breaks`` whether some would fail."""

    name: str
    change: Kind
    before: str | None = None
    after: str | None = None
    effect: str = ""
    breaks: bool = False

    @property
    def text(self) -> str:
        """The change as a line of a diff."""
        if self.change == "added":
            return f"+ {self.name} {self.after}".rstrip()
        if self.change == "gone":
            return f"- {self.name} {self.before}".rstrip()
        if self.change == "renamed":
            return f"! {self.before} -> {self.name}"
        return f"! {self.name} {self.before} -> {self.after}"


def list_changes(
    written: Written,
    now: Mapping[str, str],
    kind: str,
    *,
    is_replaced: bool = False,
    renames: Mapping[str, str] | None = None,
) -> tuple[ColumnChange, ...]:
    """Return the columns that differ, present ones first, in their order; ``kind`` is the format of new files.

    ``renames`` are the names that the load changes: those before, and those after. ``is_replaced`` says that the load's
    files replace all others: readers never see both.
    """
    before = {name.lower(): (name, t) for name, t in written.columns.items()}
    after = {name.lower(): (name, t) for name, t in now.items()}
    due = {old.lower(): new for old, new in (renames or {}).items() if old.lower() in before}
    before = {due.get(key, key).lower(): column for key, column in before.items()}
    changes = [_compare_types(name, before[key][1], t, written.kind)
               for key, (name, t) in after.items() if key in before and kind == written.kind]  # fmt: skip
    listed = [change for change in changes if change is not None]
    listed += [
        ColumnChange(name=new, change="renamed", before=old, effect=WHO_NOTICES, breaks=True)
        for old, new in due.items()
    ]
    listed += _list_added(before, after)
    listed += _list_gone(before, after)
    if kind == written.kind == "csv":
        listed += _compare_order(list(before), list(after))
    return tuple(map(_without_old_rows, listed) if is_replaced else listed)


def _without_old_rows(change: ColumnChange) -> ColumnChange:
    """Return the change for readers of a table that a full refresh replaces."""
    if change.change == "added":
        return change.model_copy(update={"effect": ""})
    if change.change == "gone":
        return change.model_copy(update={"effect": "queries that name it fail", "breaks": True})
    if change.change == "type" and change.breaks:
        return change.model_copy(update={"effect": f"queries that expect {change.before} fail, or mean another thing"})
    return change


def _list_added(before: Mapping[str, tuple[str, str]], after: Mapping[str, tuple[str, str]]) -> Iterator[ColumnChange]:
    for key, (name, t) in after.items():
        if key not in before:
            yield ColumnChange(name=name, change="added", after=t, effect="null in the rows of earlier loads")


def _list_gone(before: Mapping[str, tuple[str, str]], after: Mapping[str, tuple[str, str]]) -> Iterator[ColumnChange]:
    for key, (name, t) in before.items():
        if key not in after:
            yield ColumnChange(name=name, change="gone", before=t, effect="null in the rows of this load")


def _compare_types(name: str, before: str, after: str, kind: str) -> ColumnChange | None:
    if before == after:
        return None
    if is_widened(before, after):
        effect = "a longer type of the same values, which readers take"
        return ColumnChange(name=name, change="type", before=before, after=after, effect=effect)
    effect = "the table has one type for all its rows" if kind == "table" else (
        "old and new files together fail, or give values of another type"
    )  # fmt: skip
    return ColumnChange(name=name, change="type", before=before, after=after, effect=effect, breaks=True)


def _compare_order(before: Sequence[str], after: Sequence[str]) -> list[ColumnChange]:
    """Compare positions, by which CSV is read too: present columns must keep theirs, and new columns must follow."""
    if list(after[: len(before)]) == list(before) or list(before[: len(after)]) == list(after):
        return []
    index = next(index for index, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    effect = "by position, one column is taken for another"
    return [
        ColumnChange(
            name=f"column {index + 1}", change="order", before=before[index], after=after[index], effect=effect,
            breaks=True,
        )
    ]  # fmt: skip


def is_widened(before: str, after: str) -> bool:
    """Return True if the new type has every value of the old, and Iceberg, Spark and Parquet's readers promote it.

    See: https://iceberg.apache.org/spec/#schema-evolution
    """
    whole, floats = ("tinyint", "smallint", "int", "bigint"), ("float", "double")
    for family in (whole, floats):
        if before in family and after in family:
            return family.index(before) < family.index(after)
    try:
        old, new = to_arrow_type(before), to_arrow_type(after)
    except SchemaIncompatibleError:
        return False
    is_decimal = before.startswith("decimal") and after.startswith("decimal")
    return is_decimal and can_hold(new, old) and old.scale == new.scale


def list_layout_changes(written: Written, key: str, kind: str, *, is_known: bool) -> tuple[str, ...]:
    """Return the changes of format and folder that break readers of the files; ``key`` is the first new file's.

    ``is_known`` says that the present layout could have named the old file, whatever the load.
    """
    changes = []
    if written.kind != kind:
        changes.append(f"the files become {kind}, they were {written.kind}")
    old, new = (name.rpartition("/")[0] for name in (written.key, key))
    is_same = is_known or _VARIABLE.sub("*", old) == _VARIABLE.sub("*", new)
    if not is_same or _list_partition_keys(old) != _list_partition_keys(new):
        changes.append(f"the files go to the folder {new}, they were in {old}")
    return tuple(changes)


def _list_partition_keys(folder: str) -> list[str]:
    """List the keys of a path's folders, such as ``load_date`` of ``load_date=2026-01-31``: readers turn keys into
    columns."""
    return [part.partition("=")[0] if "=" in part else "" for part in folder.split("/")]
