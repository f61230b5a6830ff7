"""Define what a load reports to a listener while it runs."""

from typing import Literal

from lakewriter.records.actions import CatalogAction
from lakewriter.report import TableResult
from lakewriter.shape.shapers import AnyPlan
from lakewriter.spec.table_spec import TableSpec

End = Literal["done", "failed", "stopped"]


class Follower:
    """A follower of a load's tables, which does nothing. No call raises, and only ``close`` may wait."""

    def start(self, table: TableSpec, /) -> None:
        """Note that a table has registered."""

    def describe(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """Note the columns and the location of a table."""

    def resume(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """Note that this process continues a table that another process has started and described."""

    def commit(self, table: TableSpec, version: str | None, /) -> None:
        """Note that a table is published; ``version`` is its version where its catalog has versions."""

    def end(self, result: TableResult, error: BaseException | None, /) -> None:
        """Note that a table has ended; its later events are ignored."""

    def flush(self) -> None:
        """Wait until all is sent so far, and no longer than ``lineage.timeout_seconds``."""

    def close(self, end: End, /) -> tuple[str, ...]:
        """Note that the load has ended. Return what could not be sent so far, in words for a user."""
        return ()
