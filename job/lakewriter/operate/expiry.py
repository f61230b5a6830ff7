"""Expire old snapshots of an Iceberg table, and delete the files that only they have.

An expiry is a change like a compaction: its intent names the snapshots, any process finishes it from the intent alone,
and loads go on meanwhile. Files are deleted when the snapshots are gone, before the change counts as committed.
"""

from datetime import timedelta

from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.iceberg.expire_snapshots import Expirable, Rules, find_expirable, to_milliseconds
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.operate.compaction import Upkeep
from lakewriter.records.changes import Expire
from lakewriter.report import TableReport
from lakewriter.spec.load_ids import make_expiry_job_id
from lakewriter.spec.table_spec import TableSpec


class Expiry(Upkeep):
    """Expires the snapshots of one table that are older than ``days``, but for the last ``keep`` of each branch."""

    def __init__(self, pipeline: Pipeline, table: TableSpec, days: float, keep: int) -> None:
        super().__init__(pipeline, table)
        self._days, self._keep = days, keep

    def plan(self) -> Expirable:
        """Return what would be expired. Nothing is changed; ``SPEC_INVALID`` for a table that was never loaded."""
        return self._find()

    def run(self) -> TableReport | None:
        """Expire what nothing needs, at most as many snapshots as one change takes; return the report, None where
        there is nothing to expire."""
        state = recover(self._control, self._pipeline.open_clients)
        expirable = self._find()
        if expirable.is_empty:
            return None
        attempt = self._begin(make_expiry_job_id(self._table.id, state.committed + 1))
        registered = self._register(attempt, {})
        if registered is None:
            return self._control.read_report(attempt.job_id)
        attempt, began = registered
        try:
            attempts.bind(
                self._control, attempt, self._make_intent(expirable, attempt), began, self._pipeline.open_clients
            )
        except BaseException:
            attempts.leave(self._control, attempt)
            raise
        attempts.settle(self._control, attempt, self._pipeline.open_clients)
        return self._control.read_report(attempt.job_id)

    def _find(self) -> Expirable:
        spec, action = self._pipeline.spec, self._plan_action()
        now = self._control.require_time()
        before = to_milliseconds(now - timedelta(days=self._days))
        rules = Rules(spec.pipeline, to_milliseconds(now), before, self._keep)
        expirable = find_expirable(action, self._pipeline.clients, rules, self._control.state.read)
        if expirable is None:
            raise self._make_absence_error(action)
        return expirable

    def _make_intent(self, expirable: Expirable, attempt: Attempt) -> Expire:
        table = self._table
        return Expire(
            pipeline=attempt.pipeline,
            job_id=attempt.job_id,
            attempt=attempt.id,
            table_id=table.id,
            schema_name=table.schema_name,
            table=table.name,
            started=attempt.started,
            access=self._pipeline.spec.access,
            catalog=expirable.action,
            expire=expirable.intent,
        )
