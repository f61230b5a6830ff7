"""Decide once whether the intents that an attempt has for several tables are bound, all of them or none.

Each table's state names its intent as ``prepared`` first. The decision is one object, which is created once. Its
creator decides: the attempt decides that all are bound; another process, which finds a table prepared, decides that
none is. The object also keeps the sync's source state, once for all tables.

A second object says in the same way whether the files of all tables could be completed. No table is published before it
exists. If one table cannot be completed, none of the tables is committed.
"""

from typing import Literal, NamedTuple, Self

from lakewriter.commit.control import Control
from lakewriter.control_object import ControlObject, parse
from lakewriter.errors import PendingUnrecoverableError
from lakewriter.records.changes import Intent
from lakewriter.records.state import Failure, Pending
from lakewriter.records.sync_records import SourceState


class Group(NamedTuple):
    """The intents of an attempt that are bound together: those of its sync, or of the tables that are named after one
    of them."""

    job_id: str
    attempt: str
    name: str = ""

    @classmethod
    def of(cls, intent: Intent | Pending) -> Self:
        """Return the group that an intent is in."""
        return cls(intent.job_id, intent.attempt, intent.group)


class Decision(ControlObject):
    """Whether the intents are bound; ``tables`` are those of the sync, by id.

    ``source`` is the state for all streams after the sync, None where there is none; ``before`` is the digest of the
    state for all streams when the sync began.
    """

    version: Literal[1] = 1
    bound: bool
    tables: tuple[str, ...] = ()
    source: SourceState | None = None
    before: str | None = None


def decide(control: Control, group: Group, decision: Decision) -> Decision:
    """Return the decision of a group: this one, or the one that another process wrote first."""
    key = control.keys.decision(*group)
    control.write_once(key, decision.model_dump_json(indent=1), keep=True)
    written = find_decision(control, group)
    if written is None:
        raise PendingUnrecoverableError(f"{key} was deleted.", remedy="Restore the object from its bucket's versions.")
    # Rule first-decision
    return written


def find_decision(control: Control, group: Group) -> Decision | None:
    """Return the decision of a group; None while there is none."""
    key = control.keys.decision(*group)
    body = control.read_body(key)
    return None if body is None else parse(Decision, key, body)


def is_bound(control: Control, pending: Pending) -> bool:
    """Return whether a prepared intent is bound; an undecided one is decided as not bound."""
    decision = find_decision(control, Group.of(pending))
    if decision is None:
        # Rule undecided-unbound
        decision = decide(control, Group.of(pending), Decision(bound=False))
    return decision.bound


class GroupCompletion(ControlObject):
    """How the completion of the files of all tables ended: ``failure`` says why one of them cannot be completed."""

    version: Literal[1] = 1
    failure: Failure | None = None


def find_completion(control: Control, group: Group) -> GroupCompletion | None:
    """Return how the files of a group's tables were completed; None while that is open."""
    key = control.keys.completion(*group)
    body = control.read_body(key)
    return None if body is None else parse(GroupCompletion, key, body)


def conclude_completion(control: Control, group: Group, failure: Failure | None) -> Failure | None:
    """Return why the tables cannot be completed: this ``failure``, or what another process wrote first."""
    key = control.keys.completion(*group)
    control.write_once(key, GroupCompletion(failure=failure).model_dump_json(indent=1), keep=True)
    written = find_completion(control, group)
    if written is None:
        raise PendingUnrecoverableError(f"{key} was deleted.", remedy="Restore the object from its bucket's versions.")
    # Rule first-completion
    return written.failure


def read_sync_decision(control: Control, source: SourceState) -> Decision | None:
    """Return the decision that keeps the state; None for a state that the table keeps itself, as earlier releases
    wrote it. ``PENDING_UNRECOVERABLE`` where the decision is gone."""
    if source.record is None:
        return None
    sync = Group(*source.record.split("/"))
    decision = find_decision(control, sync)
    if decision is None or decision.source is None:
        raise PendingUnrecoverableError(
            f"{control.keys.decision(*sync)} keeps the state of the source that table {control.table_id} is "
            "at, and is not there.",
            remedy="Restore the object from its bucket's versions; or let the stream begin anew, which appends all of "
            f"its rows again: lakewriter reset LAKE {control.table_id} --no-cursor --reason WHY",
        )
    return decision
