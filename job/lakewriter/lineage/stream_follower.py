"""Follow a table of a continuous run: all of its batches, in whatever number, are one run of its job."""

import logging
import time
import uuid
from collections.abc import Callable
from typing import Final

from lakewriter.lineage.facts import Run, Statistics
from lakewriter.lineage.follower import End, Follower
from lakewriter.lineage.load_follower import (
    describe_table,
    make_account_finder,
    open_sender,
    read_clock,
    redact,
    start_table,
)
from lakewriter.records.actions import CatalogAction
from lakewriter.report import TableResult
from lakewriter.shape.shapers import AnyPlan
from lakewriter.spec.lineage import Lineage
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

LOG: Final = logging.getLogger(__name__)

SECONDS: Final = 60.0
"""Between two events of a table: there may be a batch every second."""


class StreamFollower(Follower):
    """START at the first batch, RUNNING after a batch at most once a minute, and one event when the run ends.

    Numbers are those of the run so far. A batch that fails is tried again: no event reports it.
    """

    def __init__(
        self, spec: Spec, settings: Lineage, table: TableSpec, clock: Callable[[], float] = time.monotonic
    ) -> None:
        started = read_clock()
        run = Run(
            started,
            f"{spec.pipeline}/{uuid.uuid4().hex}/{table.id}",
            settings.namespace,
            f"{spec.pipeline}.{table.id}",
            "TABLE",
            is_streaming=True,
        )
        self._spec, self._clock, self._sender = spec, clock, open_sender(settings)
        self._find_account = make_account_finder(spec)
        self._facts = start_table(spec, table, run, self._find_account)
        self._written = Statistics(0, 0, 0)
        self._is_begun = self._is_over = self._is_loading = False
        self._reported_at: float | None = None

    def start(self, table: TableSpec, /) -> None:
        """See ``Follower``: a batch has registered."""
        self._is_loading = True
        if not self._is_begun:
            self._is_begun = True
            self._sender.put(self._facts.make_moment("START"))

    def describe(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """See ``Follower``."""
        try:
            self._facts = describe_table(self._spec, self._facts, plan, action, self._find_account)
        except Exception:
            LOG.exception("The lineage of table %s met a fault of the program.", table.id)

    def resume(self, table: TableSpec, plan: AnyPlan, action: CatalogAction, /) -> None:
        """See ``Follower``: no other process has a batch of this run."""

    def commit(self, table: TableSpec, version: str | None, /) -> None:
        """See ``Follower``."""
        self._facts = self._facts.at_version(version)

    def flush(self) -> None:
        """See ``Follower``: the end of the run waits."""

    def end(self, result: TableResult, error: BaseException | None, /) -> None:
        """See ``Follower``: a batch has ended."""
        is_loaded, self._is_loading = self._is_loading and error is None and result.status == "done", False
        if not is_loaded:
            return
        before = self._written
        self._written = Statistics(before.rows + result.rows, before.size + result.bytes, before.files + result.files)
        now = self._clock()
        if self._reported_at is None or now - self._reported_at >= SECONDS:
            self._reported_at = now
            self._sender.put(self._facts.make_moment("RUNNING", statistics=self._written))

    def close(self, end: End, /) -> tuple[str, ...]:
        """See ``Follower``: a batch's events are not waited for."""
        return self._sender.problems

    def finish(self, error: BaseException | None) -> None:
        """End the run of the table, which was stopped, or failed for good."""
        if not self._is_begun or self._is_over:
            return
        self._is_over = True
        if error is None:
            self._sender.put(self._facts.make_moment("COMPLETE", statistics=self._written))
        else:
            self._sender.put(self._facts.make_moment("FAIL", statistics=self._written, error=redact(error)))
