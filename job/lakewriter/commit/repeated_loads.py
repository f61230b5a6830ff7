"""Know which loads were taken back, and under which job ids their rows are loaded again.

The job id of an undone load stays burnt. ``{job_id}.r2`` repeats it: in a table where the first load is undone, or was
never done, it loads; in any other it is done.
"""

from dataclasses import dataclass
from typing import Literal

from lakewriter.commit.control import Control
from lakewriter.control_object import ControlObject, parse
from lakewriter.errors import LoadUndoneError, SpecInvalidError
from lakewriter.records.state import TableState, Undone
from lakewriter.spec.load_ids import find_job_ids, is_next_job_id, make_next_job_id, make_undo_job_id


class RepeatRecord(ControlObject):
    """The loads that the load ``job_id`` repeats, the first one first; written before any of their files is removed."""

    version: Literal[1] = 1
    job_id: str
    repeats: tuple[str, ...]


@dataclass(frozen=True)
class Repeats:
    """The undone loads that a load repeats, the first one first, and the load that repeats it: it is undone itself."""

    of: tuple[str, ...] = ()
    by: str | None = None


def read_repeats(control: Control, job_id: str) -> Repeats:
    """Read what a load repeats and is repeated by; ``SPEC_INVALID`` for a job id that no load may choose."""
    ids = find_job_ids(job_id)
    if ids is not None and not ids.are_loads:
        raise SpecInvalidError(
            f"job id {job_id!r} begins with {ids.start!r}, as those of {ids.many} do.",
            remedy="Give the load another job id.",
        )
    of = _read(control, job_id) if is_next_job_id(job_id) else ()
    if of is None:
        # A load that began before such job ids had a meaning may continue.
        if not any(control.store.list_entries(f"{control.keys.load(job_id)}/", limit=1)):
            raise SpecInvalidError(
                f"job id {job_id!r} is that of a load after an undo, and no load is undone that it would repeat.",
                remedy="Give the load a job id that does not end in '.r' and a number.",
            )
        of = ()
    following = make_next_job_id(job_id)
    return Repeats(of, following if _read(control, following) is not None else None)


def find_last_repeat(control: Control, job_id: str) -> str:
    """Return the last job id that repeats ``job_id``: its own where it is not undone."""
    while _read(control, following := make_next_job_id(job_id)) is not None:
        job_id = following
    return job_id


def note_repeat(control: Control, job_id: str) -> None:
    """Record that the load ``job_id`` is undone in some table, so that its next job id may be used."""
    before = _read(control, job_id) if is_next_job_id(job_id) else None
    record = RepeatRecord(job_id=make_next_job_id(job_id), repeats=(*(before or ()), job_id))
    control.write_once(control.keys.repeat(record.job_id), record.model_dump_json(indent=1), keep=True)


def _read(control: Control, job_id: str) -> tuple[str, ...] | None:
    key = control.keys.repeat(job_id)
    body = control.read_body(key)
    return None if body is None else parse(RepeatRecord, key, body).repeats


def is_undone(control: Control, state: TableState, job_id: str) -> bool:
    """Return whether the load, which has a report, is undone: the state names only the last undos, but each undo has a
    report.
    """
    return state.find_undone(job_id) is not None or control.read_report(make_undo_job_id(job_id)) is not None


def find_done(control: Control, state: TableState, job_id: str, repeats: Repeats) -> str | None:
    """Return the job id under which the load is done in this table: its own, or that of one it repeats.

    None where it is still to do. ``LOAD_UNDONE`` where the job id loads nothing any more.
    """
    undone = state.find_undone(job_id)
    is_taken_back = undone is not None or repeats.by is not None
    if undone is None:
        # Rule repeat-where-undone
        for done in (job_id, *repeats.of):
            if control.read_report(done) is not None:
                if not is_undone(control, state, done):
                    return done
                is_taken_back = is_taken_back or done == job_id
    if not is_taken_back:
        return None
    raise make_undone_error(control, job_id, undone)


def make_undone_error(control: Control, job_id: str, undone: Undone | None) -> LoadUndoneError:
    """Make the error for a load that was taken back in this table, or with None in another one."""
    following = undone.next if undone is not None else make_next_job_id(job_id)
    why = f"was undone at {undone.at:%Y-%m-%d %H:%M} UTC ({undone.reason})" if undone else "is undone in another table"
    return LoadUndoneError(
        f"load {job_id!r} of table {control.table_id} {why}, and its job id loads nothing again.",
        remedy=f"Load its rows again under the job id that replaces it: --job-id {following}",
    )
