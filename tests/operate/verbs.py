"""What each command by hand comes to, at each moment of each kind of change.

It follows from the phases in which the fold lets a step be taken, from what the kind of change is, and from what its
catalog can say of a change that readers do not see. The words are those that ``Drill`` gives:

undone    nothing of the change stays: its files are deleted, the cursor is as before, and its job id may run again
closed    the change stays and counts as committed; its job id does not run again
given up  the undo is given up: the load that it was to remove stays
done      the command has had its effect
nothing   there is nothing left to do
a code    the command is refused, and the table's state is unchanged; ``undo``, ``compact`` and ``replay`` finish
          what is pending first, and may be refused after that
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from lakewriter.records.fold.by_hand import ByHand
from lakewriter.records.fold.closing import EndBlindly
from lakewriter.records.fold.steps import GiveUp
from lakewriter.records.state import Phase

INVALID, LOST, STATE_LOST = "SPEC_INVALID", "PENDING_UNRECOVERABLE", "STATE_LOST"


@dataclass(frozen=True)
class Moment:
    """``is_over`` says that whoever finishes what is pending completes the change; ``is_seen`` that readers see it."""

    phase: Phase | None = None
    is_over: bool = True
    is_seen: bool = False
    lost: Literal["intent", "state"] | None = None


MOMENTS: Final[Mapping[str, Moment]] = {
    "nothing is pending": Moment(),
    "an attempt is registered": Moment(is_over=False),
    "`intended`": Moment("intended"),
    "`uploaded`, readers do not see it": Moment("uploaded"),
    "`uploaded`, readers see it": Moment("uploaded", is_seen=True),
    "its report is written": Moment("uploaded", is_seen=True),
    "`aborting`": Moment("aborting", is_over=False),
    "`intended`, the intent is lost": Moment("intended", lost="intent"),
    "`uploaded`, the intent is lost": Moment("uploaded", lost="intent"),
    "the state is lost": Moment(lost="state"),
}


@dataclass(frozen=True)
class Kind:
    """A kind of change.

    is_certain  whether its catalog can say that it lacks the change for good: Iceberg by its snapshots, a full refresh
                by the object or the location that it switches
    undo        what becomes of ``undo`` of its load: ``of it``; ``twice`` where the change is that undo, ``replayed``
                where it took the load's rows out of the quarantine, ``earlier`` where a load before it is undone
    compact     whether its table can be compacted, and whether it then has files for that
    """

    is_certain: bool = False
    undo: Literal["of it", "twice", "replayed", "earlier", "refused"] = "of it"
    compact: Literal["refused", "nothing", "done", "twice"] = "refused"


KINDS: Final[Mapping[str, Kind]] = {
    "append": Kind(),
    "overwrite": Kind(undo="refused"),
    "refresh": Kind(is_certain=True),
    "replace partitions": Kind(is_certain=True, compact="nothing"),
    "undo": Kind(undo="twice"),
    "undo of a refresh": Kind(undo="twice"),
    "replay": Kind(undo="replayed"),
    "merge": Kind(is_certain=True, compact="done"),
    "compaction": Kind(is_certain=True, undo="earlier", compact="twice"),
    "expiry": Kind(is_certain=True, undo="earlier", compact="done"),
    "micro-batch": Kind(),
}


def abandon(at: Moment, kind: Kind) -> str:
    if at.phase is None:
        return INVALID
    if at.lost:
        return LOST
    if at.phase not in GiveUp.successions:
        return "given up" if kind.undo == "twice" else "undone"
    if kind.undo == "twice":
        # Some of the load's files may be gone.
        return INVALID
    return "undone" if kind.is_certain and not at.is_seen else "closed"


def abandon_without_intent(at: Moment, kind: Kind) -> str:
    if at.phase not in EndBlindly.successions:
        return INVALID
    if not at.lost:
        return "closed" if kind.undo == "twice" and at.phase == "uploaded" else INVALID
    return "closed" if kind.undo == "twice" or at.phase == "uploaded" else "undone"


def change_by_hand(at: Moment, kind: Kind) -> str:
    """``reset``: the step is valid while nothing is pending, so that is finished first; it needs its intent."""
    return LOST if at.lost and at.phase not in ByHand.successions else "done"


def undo(at: Moment, kind: Kind) -> str:
    if at.lost:
        return LOST
    ends = {
        "of it": ("done", INVALID),
        "twice": ("nothing", "done"),
        "replayed": (INVALID, "done"),
        "earlier": ("done", "done"),
        "refused": (INVALID, INVALID),
    }
    return ends[kind.undo][not at.is_over]


def undo_twice(at: Moment, kind: Kind) -> str:
    first = undo(at, kind)
    return first if first.isupper() else "nothing"


def replay(at: Moment, kind: Kind) -> str:
    if kind.undo != "replayed":
        return INVALID
    return LOST if at.lost else "nothing" if at.is_over else "done"


def compact(at: Moment, kind: Kind) -> str:
    if kind.compact == "refused":
        return INVALID
    if at.lost:
        return LOST
    if kind.compact == "twice":
        return "nothing" if at.is_over else "done"
    return kind.compact


VERBS: Final = {
    "abandon": abandon,
    "abandon --intent-lost": abandon_without_intent,
    "reset --no-cursor": change_by_hand,
    "reset --go-on": change_by_hand,
    "rebuild": lambda at, kind: INVALID,
    "undo": undo,
    "undo, twice": undo_twice,
    "compact": compact,
    "replay": replay,
}


def expect(verb: str, moment: str, name: str) -> str:
    """What a verb comes to: the code of its refusal, or one of the words above."""
    at, kind = MOMENTS[moment], KINDS[name]
    if at.lost != "state":
        return VERBS[verb](at, kind)
    if verb == "rebuild":
        return "done"
    # A table without a quarantine, or in no Iceberg catalog, is refused before its state is read.
    end = VERBS[verb](Moment(), kind) if verb in {"replay", "compact"} else ""
    return INVALID if end == INVALID else STATE_LOST
