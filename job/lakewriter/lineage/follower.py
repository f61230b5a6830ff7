"""What a load tells while it runs, whoever listens, and the listener that says nothing."""

from typing import Literal, Protocol

from lakewriter.commit.intent import CatalogAction
from lakewriter.report import TableResult
from lakewriter.shape.shapers import AnyPlan
from lakewriter.spec.specification import TableSpec

End = Literal["done", "failed", "stopped"]


class Follower(Protocol):
    """Is told of a load's tables. No call raises, and none waits for anything but ``close``."""

    def start(self, table: TableSpec, /) -> None:
        """A table has registered."""

    def describe(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """A table's columns and place are known."""

    def resume(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """A table that another process has started and described goes on in this one."""

    def commit(self, table: TableSpec, version: str | None, /) -> None:
        """A table is published, as this version of it where its catalog has versions."""

    def end(self, result: TableResult, error: BaseException | None, /) -> None:
        """A table has ended; what is said of it again is passed over."""

    def flush(self) -> None:
        """Wait until all is sent so far, and no longer than ``lineage.timeout_seconds``."""

    def close(self, end: End, /) -> tuple[str, ...]:
        """The load has ended. Returns what could not be sent so far, in words for a user."""


class Silence:
    """Follows nothing."""

    def start(self, table: TableSpec, /) -> None:
        """Do nothing."""

    def describe(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """Do nothing."""

    def resume(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """Do nothing."""

    def commit(self, table: TableSpec, version: str | None, /) -> None:
        """Do nothing."""

    def end(self, result: TableResult, error: BaseException | None, /) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    def close(self, end: End, /) -> tuple[str, ...]:
        """Return nothing."""
        return ()
