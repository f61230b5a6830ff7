"""Describe the form of a source whose rows are events, each of which changes a row of the source's own table."""

from typing import Final, Literal

from lakewriter.spec.model import Model

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""Debezium's ``unavailable.value.placeholder`` where its connector sets no other."""
CHANGE_ORDER: Final = ("_change_epoch", "_change_log", "_change_position", "_change_row")
"""The columns by which Debezium's events are ordered: each decides where those before it are equal."""
CHANGE_SOURCE: Final = "_change_source"
"""The column beside them with the table that an event is of: a truncate is one of its rows alone."""
CHANGE_OP: Final = "_change_op"
"""The column of a history with the operation of Debezium's event: ``c``, ``u``, ``d``, ``r``, ``t``, or ``s``."""
TRUNCATE: Final = "t"
SNAPSHOT_END: Final = "s"
"""The operation of the row that stands for the end of a whole snapshot in a higher epoch."""
CHANGE_TIME: Final = "_change_time"
"""The column of a history with the time of the change, by the clock of the source."""
CHANGE_UNCHANGED: Final = "_change_unchanged"
"""The column of a history with the names of the columns, as JSON, whose unchanged values the event leaves out."""
_ORDERED_BY: Final = {"debezium": CHANGE_ORDER, "dms": ()}


class ChangeEvents(Model):
    """The form of events.

    Debezium's have an ``epoch``, which outranks all lower ones, and the text that stands for an ``unavailable`` value;
    with ``wall_clock`` those of MongoDB may be ordered by their server's wall clock.
    Those of DMS have the operation in the column ``op``; files whose names match ``full_load`` have rows without one,
    and columns that begin with ``before`` have the values that an update has replaced.
    """

    form: Literal["debezium", "dms"]
    epoch: int = 0
    unavailable: str = UNAVAILABLE
    wall_clock: bool = False
    op: str = "Op"
    full_load: str | None = None
    before: str | None = None

    @property
    def gives(self) -> frozenset[str]:
        """The keys of a table's entry that the events make unnecessary."""
        return frozenset({"deleted", *(["order_by"] if self.order else [])})

    @property
    def has_rows_inside(self) -> bool:
        """True if the columns of rows are members of the events, not the source's own columns."""
        return self.form == "debezium"

    @property
    def order(self) -> tuple[str, ...]:
        """The columns of a row's order that the events themselves give; none where the file names one."""
        return _ORDERED_BY[self.form]
