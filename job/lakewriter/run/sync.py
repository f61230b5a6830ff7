"""What a sync is to do with each table: its numbers, what it replaces, and where its records come from."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakewriter.commit.control import Control
from lakewriter.commit.generations import SourceState, SyncIntent
from lakewriter.commit.old_objects import Old, below, highest, survey
from lakewriter.commit.state import TableState
from lakewriter.errors import LakeError
from lakewriter.report import TableResult
from lakewriter.source.messages.splits import MessagesFeed
from lakewriter.spec.key_layout import KeyLayout
from lakewriter.spec.specification import Mode, Spec, TableSpec


@dataclass(frozen=True)
class TableSync:
    """One table's part; ``feed`` is None for a table that is read as its ``read`` says."""

    intent: SyncIntent
    feed: MessagesFeed | None = None
    purge: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Sync:
    """Tables by id, the only ones that are loaded; ``failures`` go into the report with the others."""

    sync_id: int
    tables: Mapping[str, TableSync]
    failures: tuple[tuple[TableResult, LakeError], ...] = ()


@dataclass(frozen=True)
class Ending:
    """How a table's input ends: ``complete`` lets older generations go, ``continues`` stays in the one begun."""

    complete: bool = True
    continues: bool = False
    source: SourceState | None = None


def sync_number(spec: Spec, states: Mapping[str, TableState], reports: list[int | None], given: int | None) -> int:
    """The number of this sync: as given, as the catalog says, as an earlier attempt of the load had it, or the next."""
    if given is not None:
        return given
    said = [table.stream.sync_id for table in spec.tables if table.stream and table.stream.sync_id is not None]
    had = [number for number in reports if number is not None]
    if said or had:
        return (said or had)[0]
    return max((state.sync.sync_id for state in states.values()), default=0) + 1


def table_intent(spec: Spec, table: TableSpec, control: Control, sync_id: int, ending: Ending) -> TableSync:
    """The generations of one table's load, and the objects that go with it."""
    if not isinstance(table.layout, KeyLayout):
        raise TypeError(f"{table.id} has no layout of keys")
    state = control.state.read()
    generation, lowest, objects = state.sync.generation_id, 0, None
    if table.stream and table.stream.generation_id is not None:
        generation, lowest = table.stream.generation_id, table.stream.minimum_generation_id or 0
    elif table.mode is Mode.OVERWRITE and ending.continues:
        lowest = generation
    elif table.mode is Mode.OVERWRITE:
        objects = _survey(spec, table, control, state)
        generation = max(generation, highest(objects)) + 1
        lowest = generation
    if lowest and objects is None and (ending.complete or spec.purge_first):
        objects = _survey(spec, table, control, state)
    old = below(objects or (), lowest)
    intent = SyncIntent(
        sync_id=sync_id,
        generation_id=generation,
        minimum_generation_id=lowest,
        retire=old if ending.complete and not spec.purge_first else (),
        source=ending.source,
        unfinished=not ending.complete,
        exclusive=bool(lowest) or ending.source is not None or not table.layout.varies,
    )
    return TableSync(intent, purge=old if spec.purge_first else ())


def _survey(spec: Spec, table: TableSpec, control: Control, state: TableState) -> tuple[Old, ...]:
    others = [each.layout for each in spec.tables if each is not table and isinstance(each.layout, KeyLayout)]
    return survey(control, table.layout, state.sync, others) if isinstance(table.layout, KeyLayout) else ()
