"""The kinds of change that an intent may be: what each does to its table, and what it depends on until it is bound.

A catalog applies a change's ``Effects`` and asks for no kind. What a change leaves in the table's state is in
``fold.closing``. A new kind is a class here, a function there, and the module that plans it.
"""

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from lakewriter.commit.intent import Intent, Kind, Removal, UndoneLoad
from lakewriter.commit.state import TableState
from lakewriter.control_object import ControlObject
from lakewriter.report import join_first

MOST_NAMED: Final = 100
"""Keys that a message names."""

Replaced = Literal["nothing", "partitions", "everything"]


@dataclass(frozen=True)
class Effects:
    """What a change does to its table.

    adds            whether the intent's files become the table's
    work            the part of the intent that says what else a catalog does; its type selects how. None where files
                    are only added to the table's files, or replace them
    writes_deletes  whether the catalog writes files with deletes for it
    replaces        which of the older files readers no longer see
    generation      the generation that readers see next, where a table has generations; None: as before
    deletes         objects that are deleted once readers see the change
    bad_rows        objects that leave the quarantine with the files
    loaded          objects that leave the quarantine last: the change has loaded their rows
    """

    adds: bool
    work: ControlObject | None = None
    writes_deletes: bool = False
    replaces: Replaced = "nothing"
    generation: int | None = None
    deletes: tuple[tuple[str, str], ...] = ()
    bad_rows: tuple[Removal, ...] = ()
    loaded: tuple[Removal, ...] = ()

    @property
    def removes(self) -> UndoneLoad | None:
        """The load whose files leave the table."""
        return self.work if isinstance(self.work, UndoneLoad) else None

    @property
    def ends(self) -> tuple[tuple[str, str], ...]:
        """Key and etag of all objects that are deleted once readers see the change."""
        return (*self.deletes, *((removal.key, removal.etag) for removal in self.loaded))


class Change(ABC):
    """A change of one table, by its intent."""

    is_exclusive: ClassVar[bool] = True
    """Whether the change is valid only while no other has committed since it began, because it removes loads."""
    compares_state: ClassVar[bool] = True
    """Whether the change is valid only while the fields of the state that it was planned on are the same. Without it
    the catalog decides, by what the change has read, in the commit itself."""
    lets_loads_go_on: ClassVar[bool] = False
    """Whether loads that began before it stay valid: it changes nothing that a load depends on."""

    def __init__(self, intent: Intent) -> None:
        self.intent = intent

    @property
    @abstractmethod
    def effects(self) -> Effects:
        """The effects on the table."""

    def describe_unknown(self, why: str, before: Sequence[str]) -> str:
        """Describe, for a person, a change that is given up while nobody can tell whether readers see it. ``before``
        are the keys of the files that it replaces, where records name them."""
        new = join_first(list(self.intent.files.list_keys()), MOST_NAMED) or "none"
        return f". Whether readers see this change cannot be known{why}. Its files: {new}"

    def depends(self) -> bool:
        """Return whether the change is valid only while no other has committed since it began."""
        # Rule undo-fence
        return self.is_exclusive or self.intent.depends_on_state

    def may_bind(self, state: TableState, began: TableState) -> bool:
        """Return whether the files that an undo shows again still exist: the state drops them before they are deleted.

        ``began`` is the state that the change was planned on.
        """
        switch = self.intent.switch
        return switch is None or switch.job_id is None or state.find_generation(switch.after) is not None


class Append(Change):
    """A load that adds files. A replay of bad rows is one, too: it takes them out of the quarantine."""

    is_exclusive = False

    @property
    def effects(self) -> Effects:
        """See ``Change``."""
        sync = self.intent.sync
        return Effects(adds=True, deletes=sync.retire if sync is not None else (), loaded=self.intent.taken)

    def describe_unknown(self, why: str, before: Sequence[str]) -> str:
        """See ``Change``."""
        if self.intent.taken:
            return ""
        if self.effects.replaces == "nothing" and not self.effects.ends:
            return super().describe_unknown(why, before)
        new, old = (join_first(list(keys), MOST_NAMED) or "none" for keys in (self.intent.files.list_keys(), before))
        return (
            f". Whether readers see this refresh or what was there before it, or both, cannot be known{why}. Its "
            f"files: {new}. Those of before: {old}. The next refresh deletes both"
        )


class Merge(Append):
    """A load whose rows replace the table's older rows of the same key."""

    is_exclusive = True

    @property
    def effects(self) -> Effects:
        """See ``Change``."""
        return replace(super().effects, work=self.intent.merge, writes_deletes=True)


class Refresh(Append):
    """A full refresh: its files are all that the table has after it."""

    is_exclusive = True

    @property
    def effects(self) -> Effects:
        """See ``Change``."""
        switch = self.intent.switch
        return replace(
            super().effects,
            replaces="partitions" if self.intent.keeps_partitions else "everything",
            generation=switch.after if switch is not None else None,
        )


class Compact(Change):
    """Replace files of a table by others with the same rows, which changes nothing for readers and for loads.

    The state says nothing of the files that it has read, so any load may commit meanwhile. The commit leaves out the
    groups of files that have changed."""

    is_exclusive = False
    compares_state = False
    lets_loads_go_on = True

    @property
    def effects(self) -> Effects:
        """See ``Change``."""
        return Effects(adds=True, work=self.intent.compact)


class Undo(Change):
    """Take a load's files, or a full refresh, out of the table again."""

    @property
    def load(self) -> UndoneLoad:
        """The load that is undone."""
        assert self.intent.undoes is not None
        return self.intent.undoes

    def may_bind(self, state: TableState, began: TableState) -> bool:
        """See ``Change``: a compaction since then may have replaced the files that the undo names."""
        # Rule undo-of-compacted
        return super().may_bind(state, began) and state.compactions == began.compactions

    @property
    def effects(self) -> Effects:
        """See ``Change``. Objects that running queries may read are deleted later."""
        intent, at_once = self.intent, not self.load.grace_seconds
        return Effects(
            adds=False,
            generation=intent.switch.after if intent.switch is not None else None,
            work=self.load,
            deletes=tuple((removal.key, removal.etag) for removal in intent.removes) if at_once else (),
            bad_rows=self.load.quarantined,
        )


KINDS: Final[Mapping[Kind, type[Change]]] = {
    "load": Append,
    "merge": Merge,
    "refresh": Refresh,
    "undo": Undo,
    "compact": Compact,
}


def read_change(intent: Intent) -> Change:
    """Return the change that the intent is of."""
    return KINDS[intent.kind](intent)


def list_effects(intent: Intent) -> Effects:
    """Return what the intent does to its table."""
    return read_change(intent).effects


def require_able(effects: Effects, works: Container[type]) -> None:
    """Raise ``TypeError`` for work of another type, and for a change that has no work and adds nothing: the catalog
    would do nothing, and the change would count as committed."""
    if type(effects.work) not in works or not (effects.adds or effects.work):
        raise TypeError(f"the catalog has no way to publish the work {type(effects.work).__name__} of a change")
