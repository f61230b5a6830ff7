"""Rebuild a table's state that is lost or unusable, from what the table's loads have left."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lakewriter.aws import Clients
from lakewriter.commit.at_once import call_all
from lakewriter.commit.backoff import write
from lakewriter.commit.catalog import find_catalog
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.decisions import Group, find_decision
from lakewriter.commit.latest import read_latest
from lakewriter.commit.state_file import is_unusable
from lakewriter.commit.table_objects import find_highest_numbers, is_hidden
from lakewriter.errors import ConcurrentLoadError, SpecInvalidError, StateLostError
from lakewriter.operate.rebuild_records import Closed, Leftovers, read_leftovers
from lakewriter.receipt import Cursor
from lakewriter.records.actions import CatalogAction
from lakewriter.records.changes import Intent, Undo
from lakewriter.records.fold.closing import Close, CloseBlindly, Conclude
from lakewriter.records.fold.steps import Step, fold, number_write
from lakewriter.records.state import Pending, Phase, TableState
from lakewriter.report import format_count
from lakewriter.run.placement import plan_catalog_action
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec


@dataclass(frozen=True)
class InCatalog:
    """The pipeline's loads that a catalog shows: how many changes were committed, and loads that readers see.

    ``given_up`` are changes that it counts and that never were. ``state_id`` is the id of the state that they belong
    to, blank where nothing says it; ``generation`` is the highest number of a full refresh that it shows, at least 1
    where all changes that it counts are refreshes.
    """

    committed: int = 0
    loads: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()
    state_id: str = ""
    generation: int = 0
    has_partition: Callable[[CatalogAction], bool] = field(default=lambda _: True, compare=False)


@dataclass(frozen=True)
class Rebuilt:
    """The rebuilt state, with sentences on what was concluded and on what cannot be known."""

    state: TableState
    concluded: tuple[str, ...]
    unknown: tuple[str, ...]


def ask_catalog(spec: Spec, table: TableSpec, clients: Clients) -> InCatalog:
    """Read the pipeline's loads from the catalog; none where the catalog does not count them."""
    names = table.layout.bind(job_id="rebuild", attempt="rebuild", start=datetime.now(UTC))
    catalog = find_catalog(plan_catalog_action(spec, table, names))
    number, loads, given_up = catalog.find_changes(clients, spec.pipeline)
    if table.latest is None:
        return InCatalog(number, loads, given_up, has_partition=lambda action: catalog.has_partition(action, clients))
    latest = read_latest(S3Store(clients), table.latest)
    if latest is None or (latest.pipeline, latest.table) != (spec.pipeline, table.id):
        return InCatalog(number, loads, given_up, generation=min(number, 1))
    # The state needs the higher of both numbers: a change with a lower one would count as done.
    changes, highest = ((number, loads), (latest.change, {latest.load})), max(number, latest.change)
    seen = frozenset(load for count, loads in changes for load in loads if count == highest)
    return InCatalog(highest, seen, given_up, latest.state, max(latest.generation, 1))


def rebuild(
    control: Control, table: TableSpec, catalog: InCatalog, reason: str, cursor: Cursor | None, *, from_start: bool
) -> Rebuilt:
    """Conclude the state and write it; ``SPEC_INVALID`` where there is a state already.

    ``cursor`` is given by a person where no record has it: without one ``STATE_LOST`` is raised, unless ``from_start``
    allows the next load to read everything.
    """
    etag, before = _require_no_state(control)
    left = read_leftovers(control)
    rebuilt = conclude(control, catalog, left, reason, cursor)
    state = rebuilt.state
    is_known = state.cursor is not None or from_start or _is_cursor_taken_back(left)
    if table.cursor is not None and state.committed and not is_known:
        raise StateLostError(
            f"table {control.table_id} is read by its cursor {table.cursor!r}, and no record of a load says how far.",
            remedy="Say it by --cursor VALUE --type TYPE, such as the column's highest value in the table; or by "
            "--no-cursor that the next load is to read everything.",
        )
    _write(control, number_write(state, before), etag)
    return Rebuilt(state, tuple(_describe(state)), rebuilt.unknown)


def _is_cursor_taken_back(left: Leftovers) -> bool:
    """Return whether the last record about the cursor is an undo that left no cursor."""
    telling = [load for load in left.closed if load.report.cursor_after or load.report.undoes]
    return bool(telling) and telling[-1].report.cursor_after is None


def conclude(
    control: Control, catalog: InCatalog, left: Leftovers, reason: str, cursor: Cursor | None = None
) -> Rebuilt:
    """Conclude the state by adding the changes one after the other; ``cursor`` is one that a person gives."""
    state = TableState()
    for closed in left.closed:
        state = fold(state, _read_step(closed))
    pending = _find_pending(control, left, catalog)
    pending_load = _name_load(control, pending) if pending is not None else ""
    is_published = pending_load in catalog.loads
    writers = {stored.load for _, stored in left.objects} - {pending_load}
    committed = max(state.committed, catalog.committed - is_published, 1 if writers else 0)
    highest = find_highest_numbers(control.layout, left.keys)
    what = (
        f"state rebuilt from {format_count(len(left.closed), 'report')} and {format_count(len(left.objects), 'object')}"
    )
    step = Conclude(
        control.find_time(),
        reason,
        what,
        id=catalog.state_id or _choose_id(control, left),
        committed=committed,
        given_up=min(len(catalog.given_up), committed),
        numbers=highest._replace(generation=max(highest.generation, catalog.generation)),
        running=left.running,
        pending=pending,
        cursor=cursor,
    )
    state = fold(state, step)
    return Rebuilt(state, tuple(_describe(state)), tuple(_describe_unknown(control, state, left)))


def _choose_id(control: Control, left: Leftovers) -> str:
    """Return an id for the state, which the object has that a pending change writes; blank if no object has any."""
    attempts = [*(closed.report.attempt for closed in left.closed), *(intent.attempt for intent in left.unclosed)]
    return attempts[0] if control.latest is not None and attempts else ""


def _require_no_state(control: Control) -> tuple[str | None, int]:
    """Return the etag of an unusable state, None where there is none, and the number of its writes; ``SPEC_INVALID``
    where the state is in use."""
    content, before = control.store.get(control.keys.state(control.table_id)), 0
    if content is None:
        return None, before
    if not is_unusable(content[0]):
        state = control.state.read()
        if state.committed or state.pending or state.resets:
            raise SpecInvalidError(
                f"table {control.table_id} has a state, of {format_count(state.committed, 'committed load')}.",
                remedy="lakewriter status LAKE shows it; lakewriter reset LAKE TABLE changes it.",
            )
        before = state.write
    return content[1], before


def _read_step(closed: Closed) -> Step:
    """Return the change as a step of the table's state: by its intent, or without one by its report."""
    report = closed.report
    if closed.intent is not None:
        return Close(closed.intent, closed.at, None, report.abandoned is not None, report.health)
    return CloseBlindly(
        closed.job_id,
        report.started,
        closed.at,
        cursor=report.cursor_after,
        batch=closed.batch,
        sync_id=report.sync_id or 0,
        generation_id=report.generation_id,
        has_files=bool(report.files),
        forgets_source=True,
        undoes=report.undoes,
    )


def _name_load(control: Control, pending: Pending) -> str:
    return f"{control.keys.pipeline}/{pending.job_id}/{pending.attempt}"


def _find_pending(control: Control, left: Leftovers, catalog: InCatalog) -> Pending | None:
    """Return the newest intent that has done something: uploads are completed, and the catalog is changed, only once an
    intent is bound."""
    for intent in left.unclosed:
        phase = _find_phase(control, intent, catalog)
        if phase is not None:
            return Pending(
                job_id=intent.job_id, attempt=intent.attempt, phase=phase, since=intent.started, group=intent.group
            )
    return None


def _find_phase(control: Control, intent: Intent, catalog: InCatalog) -> Phase | None:
    def is_mine(key: str) -> bool:
        stored = control.store.find(key)
        return stored is not None and stored.load == intent.load

    if intent.load in catalog.loads:
        return "uploaded"
    if isinstance(intent, Undo):
        undone = intent.undoes
        # Until an undo is bound, it deletes no object and takes nothing out of the catalog.
        if undone.drops_partition and not catalog.has_partition(intent.catalog):
            return "uploaded"
        removes = [*undone.quarantined, *intent.removes]
        exist = call_all(lambda removal: control.store.find(removal.key) is not None, removes)
        return None if all(exist) else "uploaded"
    mine = call_all(is_mine, [receipt.key for receipt in intent.list_staged()])
    if not any(mine):
        decision = None
        if intent.together:
            decision = find_decision(control, Group.of(intent))
        return "intended" if decision is not None and decision.bound else None
    if intent.together:
        # The recovery finds out whether the other tables' uploads are complete too.
        return "intended"
    return "uploaded" if all(mine) else "intended"


def _describe(state: TableState) -> list[str]:
    lines = [f"{format_count(state.committed, 'committed load')}, the last one {state.last_job or 'unknown'}"]
    if state.cursor is not None:
        lines.append(f"cursor {state.cursor.text} ({state.cursor.type})")
    if state.counter or state.backfill:
        lines.append(f"the next file's counter {state.counter}, backfill {state.backfill}")
    if state.batch is not None:
        lines.append(f"batch {state.batch.number} of query {state.batch.query}")
    if state.sync.sync_id or state.sync.generation_id:
        sync = state.sync
        numbers = f"sync {sync.sync_id}, generation {sync.generation_id}"
        lines.append(f"{numbers}, {format_count(len(sync.live), 'load')} with live objects")
    if state.pending is not None:
        lines.append(
            f"load {state.pending.job_id} is pending ({state.pending.phase}): the next load brings it to its end"
        )
    if state.running:
        lines.append(f"unfinished attempts of {', '.join(sorted(state.running))}")
    return lines


def _describe_unknown(control: Control, state: TableState, left: Leftovers) -> list[str]:
    lines = ["changes by hand, such as a cursor that was reset after the last load"]
    # A report does not name what the load has written besides, such as files with deletes.
    known_loads = {f"{control.keys.pipeline}/{closed.job_id}/{closed.report.attempt}" for closed in left.closed}
    others = [
        key
        for key, stored in left.objects
        if stored.load not in known_loads and not _is_pending(control, state, stored.load)
    ]
    if others:
        objects = format_count(len(others), "object")
        lines.append(f"how many loads wrote {objects} whose reports were cleared away, such as {others[0]}")
    unbound = [intent for intent in left.unclosed if not _is_pending(control, state, intent.load)]
    if unbound:
        jobs = ", ".join(sorted({intent.job_id for intent in unbound}))
        lines.append(f"whether {jobs} passed its point of no return: none of its files is there, so run it again")
    lines += _describe_gone_intents(state, left)
    if state.adopted is None and (foreign := _count_foreign(control, left)):
        objects = format_count(foreign, "object")
        lines.append(
            f"whether adopt has taken over any of {objects} that no load of this pipeline is known to have written: "
            "verify reports those that are newer than a load"
        )
    if control.layout is None:
        lines.append("which objects the catalog keeps: they were not looked at")
    if state.inputs is not None:
        lines.append(
            f"whether loads have read other files than the {state.inputs.count_files():,} that are noted: say it by "
            "lakewriter reset --files-noted, --files-read or --files-unread before a load reads 'files: new'"
        )
    if state.batch is not None and state.batch.offsets is None:
        lines.append("what the checkpoint planned for the last batch: make sure that it is not an older copy")
    return lines


def _describe_gone_intents(state: TableState, left: Leftovers) -> Iterator[str]:
    without = [closed for closed in left.closed if closed.intent is None]
    if without:
        yield "counters and the source's state of loads whose intents are gone"
    if state.names is not None and state.committed > len(left.closed) - len(without):
        yield "the names and types of columns that only loads had whose intents are gone"
    if any(closed.report.undoes is not None for closed in without):
        yield "partitions that undos have dropped whose intents are gone: a call that comes late is not put right"


def _count_foreign(control: Control, left: Leftovers) -> int:
    """Return how many objects that readers see were written by nobody that is known."""
    prefix, by_loads = control.layout.prefix if control.layout is not None else "", {key for key, _ in left.objects}
    return sum(key not in by_loads and not is_hidden(key.removeprefix(prefix)) for key in left.keys)


def _is_pending(control: Control, state: TableState, load: str) -> bool:
    return state.pending is not None and load == _name_load(control, state.pending)


def _write(control: Control, state: TableState, etag: str | None) -> None:
    """Create the state, or replace the unusable one; ``CONCURRENT_LOAD`` where another process wrote one meanwhile."""
    key, body = control.keys.state(control.table_id), state.model_dump_json(indent=1).encode()

    def put() -> bool:
        written = control.store.create(key, body) if etag is None else control.store.replace(key, body, etag)
        content = control.store.get(key)
        if written is not None or (content is not None and content[0] == body):
            return True
        raise ConcurrentLoadError(
            f"{key} was written by another process meanwhile; it was left as it is.",
            remedy="lakewriter status LAKE shows the state.",
        )

    write(key, put, control.pause, remedy="Rebuild again.")
