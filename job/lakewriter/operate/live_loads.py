"""Find the committed loads of a pipeline's tables that are kept and not undone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.repeats import is_taken_back
from lakewriter.commit.state import TableState
from lakewriter.commit.traces import list_reports
from lakewriter.report import TableReport


@dataclass(frozen=True)
class TableLoads:
    """A table's state, and its loads that are kept and not undone, the oldest first.

    ``reported`` are the job ids of all loads and undos that are kept.
    """

    control: Control
    state: TableState
    loads: tuple[TableReport, ...]
    reported: frozenset[str]

    @property
    def is_whole(self) -> bool:
        """Return whether the records of all loads of the table exist."""
        return len(self.reported) >= self.state.committed

    def is_undone(self, job_id: str) -> bool:
        """Return whether the load is undone."""
        return is_taken_back(self.state, self.reported, job_id)

    def find(self, job_id: str) -> int | None:
        """Return the position of the load; None where the table has no such load, or it is undone."""
        return next((at for at, load in enumerate(self.loads) if load.job_id == job_id), None)


def read_table_loads(controls: Sequence[Control]) -> list[TableLoads]:
    """Read the loads of tables of one pipeline.

    States are read before reports are listed: what is committed in between shows in the counts of later states.
    """
    states = call_all(lambda control: control.state.read(), controls)
    reports = list_reports(controls[0].store, controls[0].keys)

    def read(control: Control, state: TableState) -> TableLoads:
        table = TableLoads(control, state, (), frozenset(reports.get(control.table_id, ())))
        names = [job for job in sorted(table.reported) if not table.is_undone(job)]
        found = [TableReport.model_validate(each) for each in call_all(control.read_report, names) if each]
        loads = sorted((each for each in found if each.undoes is None), key=lambda each: each.started)
        return replace(table, loads=tuple(loads))

    return call_all(lambda pair: read(*pair), zip(controls, states, strict=True))
