"""Conclude a table's next state from what happens to it. Nothing else sets a field of a state.

Each thing that can happen is a ``Step``. Those of attempts and of the pending intent are here, the end of a change is
in ``closing``, what a person changes is in ``by_hand``. ``fold`` returns the state after a step; it raises ``Lost``
where the step is not valid any more, since another process has moved the state.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from lakewriter.receipt import InferredColumn, InferredType
from lakewriter.records.changes import Intent
from lakewriter.records.input_records import follow_other
from lakewriter.records.state import Failure, Lost, Pending, Phase, Retiring, Running, TableState

_COMPARED_FIELDS: Final = ("changes", "cursor", "counter", "backfill", "batch", "sync", "inferred")
"""Fields of a table's state that an exclusive load depends on: none may change before it is bound."""

Successions = Mapping[Phase | None, tuple[Phase | None, ...]]
"""The phases of the pending intent in which a step is valid, each with those that it may leave; None: none pending."""

ANYWHERE: Final[Successions] = {phase: (phase,) for phase in (None, "prepared", "intended", "uploaded", "aborting")}
UNLESS_PENDING: Final[Successions] = {None: (None,)}


class Step(ABC):
    """Something that happens to a table."""

    successions: ClassVar[Successions] = ANYWHERE

    @abstractmethod
    def _apply(self, state: TableState) -> TableState:
        """Return the state after the step; ``Lost`` where it is not valid on this state."""


def fold(state: TableState, step: Step) -> TableState:
    """Return the state after the step, with nothing written; ``Lost`` where the step is not valid on this state."""
    after = step.successions.get(_get_phase(state))
    if after is None:
        raise Lost
    new = step._apply(state)
    if _get_phase(new) not in after:
        raise AssertionError(f"{type(step).__name__} leaves {_get_phase(new)!r}, expected one of {after}")
    return new


def fold_ahead(state: TableState, step: Step) -> TableState:
    """Return the state after a step that is only planned: what is pending by now has ended when it is taken."""
    return fold(set_fields(state, pending=None), step)


def number_write(state: TableState, before: int) -> TableState:
    """Return the state as it is written over one whose number of writes is ``before``."""
    # Rule write-grows
    return set_fields(state, write=before + 1)


def _get_phase(state: TableState) -> Phase | None:
    return state.pending.phase if state.pending is not None else None


def set_fields(state: TableState, **fields: Any) -> TableState:
    """Return a copy of the state with other values of ``fields``; called by steps alone."""
    return state.model_copy(update=fields)


@dataclass(frozen=True)
class Register(Step):
    """An attempt becomes the one of its job that may bind.

    seen     the state after which its clean-up was planned: none may be bound, committed or registered since
    repeats  the job ids of the loads that it repeats
    gone     attempts that registered so long ago that they are forgotten
    is_named whether the state gets an id, where it has none
    """

    job_id: str
    attempt: str
    started: datetime
    seen: TableState
    repeats: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    is_named: bool = False

    # Rule recover-first/2
    successions: ClassVar[Successions] = UNLESS_PENDING

    def _apply(self, state: TableState) -> TableState:
        earlier = state.running.get(self.job_id)
        # A report is written only while its intent is pending, so an unchanged number means that no report is new.
        # Rule register-sees-reports, registers-knowingly
        if state.committed != self.seen.committed or earlier != self.seen.running.get(self.job_id):
            raise Lost
        # An attempt at a load that this one repeats may no longer bind: this load has the same rows.
        others = {
            job: entry
            for job, entry in state.running.items()
            if entry.attempt not in self.gone and job not in self.repeats
        }
        first = (earlier.first or earlier.since) if earlier else None
        entry = Running(attempt=self.attempt, since=self.started, first=first)
        if earlier is not None:
            entry = earlier.model_copy(update=dict(entry))
        named = {"id": self.attempt} if self.is_named and not state.id else {}
        # Rule latest-registers
        return set_fields(state, running=others | {self.job_id: entry}, **named)


@dataclass(frozen=True)
class Fence(Step):
    """The state is written anew, so that no write in flight that would bind the attempt can still succeed."""

    job_id: str
    attempt: str

    def _apply(self, state: TableState) -> TableState:
        is_bound = state.is_bound(self.job_id, self.attempt)
        if is_bound or not state.is_registered(self.job_id, self.attempt):
            raise Lost
        return state


@dataclass(frozen=True)
class Leave(Fence):
    """An attempt that has staged nothing is removed from the registered ones."""

    def _apply(self, state: TableState) -> TableState:
        return set_fields(super()._apply(state), running=state.list_running_except(self.job_id))


@dataclass(frozen=True)
class Bind(Step):
    """An intent becomes pending: the point of no return, or the step before it for one that is bound together with
    others. ``began`` is the state that it was planned on."""

    pending: Pending
    intent: Intent
    began: TableState

    # Rule bind-over-pending
    successions: ClassVar[Successions] = {None: ("prepared", "intended")}

    def _apply(self, state: TableState) -> TableState:
        if not may_bind(state, self.intent, self.began):
            raise Lost
        return set_fields(state, pending=self.pending)


def may_bind(state: TableState, intent: Intent, began: TableState) -> bool:
    """Return whether the change, which was planned on the state ``began``, is still valid on this one."""
    return (
        # Rule fencing
        state.is_registered(intent.job_id, intent.attempt)
        # Rule compaction-compares-no-state
        and (not intent.compares_state or is_unchanged(began, state, exclusive=intent.depends()))
        and intent.may_bind(state, began)
    )


def is_unchanged(before: TableState, now: TableState, *, exclusive: bool) -> bool:
    """Return whether a load that was planned on ``before`` is still valid with the state ``now``.

    An exclusive load depends on every field of ``_COMPARED_FIELDS``. Any other load depends on the source's state,
    which it would overwrite, and on the last batch, since a stream that began meanwhile loads the same rows.
    """
    if not exclusive:
        return (before.sync.source, before.batch) == (now.sync.source, now.batch)
    # Rule committed-unchanged
    return all(getattr(before, name) == getattr(now, name) for name in _COMPARED_FIELDS)


@dataclass(frozen=True)
class PendingStep(Step):
    """Something that happens to the pending intent, which must be as the process has read it."""

    pending: Pending

    def _apply(self, state: TableState) -> TableState:
        # Rule move-own-pending
        if state.pending != self.pending:
            raise Lost
        return self._change(state)

    @abstractmethod
    def _change(self, state: TableState) -> TableState:
        """Return the state after the step."""


@dataclass(frozen=True)
class Turn(PendingStep):
    """The pending intent moves to another phase: by its decision, because its files are complete, or because they never
    will be (``failure``)."""

    phase: Phase
    failure: Failure | None = None

    successions: ClassVar[Successions] = {"prepared": ("intended", "aborting"), "intended": ("uploaded", "aborting")}

    def _change(self, state: TableState) -> TableState:
        return set_fields(state, pending=self.pending.model_copy(update={"phase": self.phase, "failure": self.failure}))


@dataclass(frozen=True)
class GiveUp(PendingStep):
    """A change that its catalog lacks for good is withdrawn, with the ``failure`` that its load ends with. The catalog
    may have used its number up, and that of its refresh: no other change gets them."""

    generation: int
    failure: Failure | None = None

    successions: ClassVar[Successions] = {"uploaded": ("aborting",)}

    def _change(self, state: TableState) -> TableState:
        return set_fields(
            state,
            pending=self.pending.model_copy(update={"phase": "aborting", "failure": self.failure}),
            committed=state.committed + 1,
            given_up=state.given_up + 1,
            generation=max(state.generation, self.generation),
            inputs=follow_other(state.inputs, state.committed),
        )


@dataclass(frozen=True)
class Withdraw(PendingStep):
    """Nothing is left of the pending intent."""

    successions: ClassVar[Successions] = {"aborting": (None,)}

    def _change(self, state: TableState) -> TableState:
        return set_fields(state, pending=None, running=state.list_running_except(self.pending.job_id))


@dataclass(frozen=True)
class DropGeneration(Step):
    """A replaced full refresh can be shown again no more: its objects are about to be deleted."""

    entry: Retiring

    # Rule give-up-unless-pending
    successions: ClassVar[Successions] = UNLESS_PENDING

    def _apply(self, state: TableState) -> TableState:
        if self.entry not in state.retiring:
            raise Lost
        number = self.entry.generation
        return set_fields(state, generations=tuple(other for other in state.generations if other.number != number))


@dataclass(frozen=True)
class Forget(Step):
    """The objects that a change took out of the table are deleted."""

    entry: Retiring

    def _apply(self, state: TableState) -> TableState:
        return set_fields(state, retiring=tuple(other for other in state.retiring if other != self.entry))


@dataclass(frozen=True)
class PassGeneration(Step):
    """Full refreshes up to ``number`` may have files of another table in their folders."""

    number: int

    def _apply(self, state: TableState) -> TableState:
        # Rule hand-over-number
        return set_fields(state, generation=max(state.generation, self.number))


@dataclass(frozen=True)
class Sweep(Step):
    """Control objects that are old were deleted ``at`` a time."""

    at: datetime

    def _apply(self, state: TableState) -> TableState:
        if not state.is_sweep_due(self.at):
            raise Lost
        return set_fields(state, swept=self.at)


@dataclass(frozen=True)
class Learn(Step):
    """Columns or types that the state lacks are read from the table's files. It is planned on, and never written."""

    types: tuple[InferredType, ...] | None = None
    inferred: tuple[InferredColumn, ...] | None = None

    def _apply(self, state: TableState) -> TableState:
        return set_fields(
            state,
            types=state.types if self.types is None else self.types,
            inferred=state.inferred if self.inferred is None else self.inferred,
        )
