"""Write the object that tells readers of a bucket which files of a table to read: those of its last full refresh.

Listing the table's folder shows files of several refreshes, since the files of the refresh before are kept for a while.
The object lies outside the control folder, so it says whose it is: pipeline, table, and the id of the table's state.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from lakewriter.commit.backoff import write
from lakewriter.commit.control import Control
from lakewriter.commit.mismatch import Kind, Mismatch
from lakewriter.commit.state_file import REBUILD
from lakewriter.commit.store import Store
from lakewriter.control_object import parse
from lakewriter.errors import (
    CommitUnknownError,
    NameCollisionError,
    PendingUnrecoverableError,
    S3AccessDeniedError,
    StateLostError,
)
from lakewriter.records.changes import Intent
from lakewriter.records.facets import Switch
from lakewriter.records.fold.steps import PassGeneration
from lakewriter.records.state import TableState

_ANEW: Final = "move the object away, and the next load writes it anew; until then readers of it see no table."
_MOVE_AWAY: Final = (
    "Stop the program that writes it, move the object away, and run the same job id again: it is written anew."
)


class Latest(NamedTuple):
    """The content of the object: ``change`` of the table that pipeline's ``state`` has, and the files after it."""

    pipeline: str
    table: str
    state: str
    change: int
    load: str
    generation: int
    files: tuple[str, ...]

    def is_of_table(self, control: Control) -> bool:
        """Return whether this pipeline wrote it for this table, on whatever state."""
        return (self.pipeline, self.table) == (control.keys.pipeline, control.table_id)

    def is_of(self, control: Control, state: TableState) -> bool:
        """Return whether a change of this state wrote it."""
        return self.is_of_table(control) and self.state == state.id


def read_latest(store: Store, key: str) -> Latest | None:
    """Return the content of the object, None where there is none; ``STATE_LOST`` where it does not say whose it is."""
    stored = store.get(key)
    if stored is None:
        return None
    if (latest := _parse(stored[0])) is None:
        raise StateLostError(_describe_unknown(key, stored[0]), remedy=_MOVE_AWAY)
    return latest


def require_followed(control: Control, state: TableState, *, shares: bool) -> None:
    """Raise ``STATE_LOST`` where the object is ahead of the table's state, or another's, so that readers would keep
    what it names.

    With ``shares`` the object of another pipeline or table is accepted: ``take_over`` makes it this state's. Then
    ``NAME_COLLISION`` where a change of that table is pending: its process would go on publishing it.
    """
    if control.latest is None or (latest := read_latest(control.store, control.latest)) is None:
        return
    if _is_followed(control, latest, state):
        return
    # Others may have registered and committed since the state was read. The object was read before it.
    state = control.state.read()
    is_another = not latest.is_of_table(control)
    if not _is_followed(control, latest, state) and not (is_another and shares):
        raise _make_not_followed_error(control, control.latest, latest, state)
    if is_another:
        _require_ended(control, latest)


def _require_ended(control: Control, latest: Latest) -> None:
    # Rule hand-over-ended
    if (other := _read_state_of(control, latest)) is None or other.pending is None:
        return
    job_id = other.pending.job_id
    raise NameCollisionError(
        f"table {control.table_id}: readers see the files of table {latest.table} of pipeline {latest.pipeline!r}, "
        f"whose load {job_id!r} is pending.",
        remedy=f"Let it finish, or give it up, with the file of pipeline {latest.pipeline!r}: run the same job id "
        f"again, or lakewriter abandon LAKE {job_id} --reason TEXT. Then load with this one.",
    )


def _read_state_of(control: Control, latest: Latest) -> TableState | None:
    """Return the state of the table that the object is of; None where there is none, or it may not be read."""
    key = control.keys.state_of(f"{control.keys.pipelines}{latest.pipeline}/", latest.table)
    try:
        stored = control.store.get(key)
    except S3AccessDeniedError:
        return None
    return parse(TableState, key, stored[0]) if stored is not None else None


def take_over(control: Control, state: TableState) -> TableState:
    """Make the object this state's if it is another's, and return the state. Its files stay, so readers notice nothing;
    a late process of the other pipeline finds that the object is no longer its own.

    The next refresh gets a higher number than those that such a process may write: both have their files in the folder
    of the number.
    """
    key = control.latest
    if key is None or (latest := read_latest(control.store, key)) is None or latest.is_of(control, state):
        return state
    if not latest.is_of_table(control):
        state = _pass_numbers(control, latest)

    def replace() -> bool | None:
        stored = control.store.get(key)
        latest = _parse(stored[0]) if stored is not None else None
        # One that does not say whose it is has been refused.
        if stored is None or latest is None or latest.is_of(control, state):
            return True
        owner = {**_name_owner(control, state), "change": state.committed}
        body = _encode({**json.loads(stored[0]), **owner})
        return control.store.replace(key, body, stored[1]) is not None or None

    write(key, replace, control.pause)
    return state


def _pass_numbers(control: Control, latest: Latest) -> TableState:
    other = _read_state_of(control, latest)
    used = max(latest.generation, other.generation if other is not None else 0) + 1

    return control.state.move(PassGeneration(used))


def require_earlier(control: Control, intent: Intent, number: int) -> None:
    """Raise ``COMMIT_UNKNOWN`` where the object is another's, or names the files of a later change."""
    switch = intent.effects.switch
    if switch is None or switch.latest is None:
        return
    if (stored := control.store.get(switch.latest)) is not None:
        _require_earlier(control, switch.latest, stored[0], intent, number)


def write_latest(control: Control, intent: Intent, number: int) -> None:
    """Make the object name the files after change ``number`` of the table, and read it back.

    ``COMMIT_UNKNOWN`` where it is another's, or names the files of a later change: it is left as it is.
    """
    switch = intent.effects.switch
    if switch is None or switch.latest is None:
        return
    key = switch.latest
    body = _encode(_make_content(control, intent, switch, number))

    def replace() -> bool | None:
        stored = control.store.get(key)
        if stored is not None and stored[0] == body:
            return True
        if stored is None:
            written = control.store.create(key, body)
        else:
            _require_earlier(control, key, stored[0], intent, number)
            written = control.store.replace(key, body, stored[1])
        return (written is not None and _is_there(control.store, key, body)) or None

    write(key, replace, control.pause)


def compare_latest(control: Control, state: TableState) -> list[Mismatch]:
    """List what keeps readers of the object from seeing the refresh that the ``state`` says they see; nothing while a
    change is being published."""
    if control.latest is None or state.pending is not None or not state.committed:
        return []
    mismatches = _compare(control, control.latest, state)
    return mismatches if mismatches and control.state.read().write == state.write else []


def _compare(control: Control, key: str, state: TableState) -> list[Mismatch]:
    shown = state.shown
    try:
        latest = read_latest(control.store, key)
    except StateLostError as error:
        return [Mismatch(Kind.LATEST_CHANGED, error.message, key)]
    if latest is None:
        return [Mismatch(Kind.LATEST_GONE, f"{key}, which names the files that readers are to read, is gone.", key)]
    if not _is_followed(control, latest, state):
        return [Mismatch(Kind.LATEST_CHANGED, _describe_not_followed(control, key, latest, state), key)]
    number = shown.number if shown is not None else 0
    intent = control.find_intent(shown.job_id, shown.attempt) if shown is not None else None
    expected = _list_files(intent) if intent is not None else () if shown is None else latest.files
    if (latest.generation, sorted(latest.files)) == (number, sorted(expected)):
        return []
    what = f"refresh {latest.generation} with {len(latest.files)} files, expected refresh {number} with {len(expected)}"
    return [Mismatch(Kind.LATEST_CHANGED, f"{key} names {what}.", key)]


def _is_followed(control: Control, latest: Latest, state: TableState) -> bool:
    """Return whether the next change of the state will have a higher number than the object."""
    # A change that is pending may be named already.
    return latest.is_of(control, state) and latest.change <= state.committed + (state.pending is not None)


def _make_not_followed_error(control: Control, key: str, latest: Latest, state: TableState) -> StateLostError:
    what = _describe_not_followed(control, key, latest, state)
    if latest.is_of_table(control):
        return StateLostError(what, remedy=f"{REBUILD} If the table is to begin anew: {_ANEW}")
    return StateLostError(
        what,
        remedy="Give this pipeline a path of its own. To hand the table over, stop the other pipeline and set "
        f"shares_tables: true, or take its files over: lakewriter adopt LAKE. If it is gone for good: {_ANEW}",
    )


def _describe_not_followed(control: Control, key: str, latest: Latest, state: TableState) -> str:
    names = f"{key} names the files that readers are to read"
    if not latest.is_of_table(control):
        return (
            f"{names}, and table {latest.table} of pipeline {latest.pipeline!r} has written it, expected "
            f"{control.table_id} of {control.keys.pipeline!r}."
        )
    if latest.state == state.id:
        return f"{names} after change {latest.change} of {control.table_id}, and its state knows of {state.committed}."
    return (
        f"{names} after change {latest.change} of {control.table_id} by its state {latest.state!r}, and the table has "
        f"{f'state {state.id!r}' if state.id else 'no state'}."
    )


def _require_earlier(control: Control, key: str, body: bytes, intent: Intent, number: int) -> None:
    """Raise ``COMMIT_UNKNOWN`` unless an earlier change of the same state wrote the object, or another process wrote it
    for this change."""
    latest, state, remedy = _parse(body), control.state.recall(), _MOVE_AWAY
    if latest is None:
        what = _describe_unknown(key, body)
    elif not latest.is_of(control, state):
        what = _describe_not_followed(control, key, latest, state)
        if not latest.is_of_table(control):
            remedy = (
                f"Give it up, since pipeline {latest.pipeline!r} has taken the table over: lakewriter abandon LAKE "
                f"{intent.job_id} --reason TEXT"
            )
    # Rule latest-number
    elif latest.change > number or (latest.change == number and latest.load != intent.load):
        what = f"{key} names the files after change {latest.change}, by load {latest.load!r}, expected a lower one."
    else:
        return
    raise CommitUnknownError(
        f"{what} Load {intent.job_id!r}, change {number} of {control.table_id}, has left it as it is.",
        remedy=remedy,
    )


def _is_there(store: Store, key: str, body: bytes) -> bool:
    stored = store.get(key)
    return stored is not None and stored[0] == body


def _name_owner(control: Control, state: TableState) -> dict[str, str]:
    return {"pipeline": control.keys.pipeline, "table": control.table_id, "state": state.id}


def _make_content(control: Control, intent: Intent, switch: Switch, number: int) -> dict[str, Any]:
    shown = _find_shown(control, intent, switch)
    return {
        "version": 1,
        **_name_owner(control, control.state.recall()),
        "change": number,
        "generation": switch.after,
        "job_id": shown.job_id if shown is not None else None,
        "load": intent.load,
        "rows": shown.rows if shown is not None else 0,
        "files": list(_list_files(shown)) if shown is not None else [],
    }


def _list_files(intent: Intent) -> tuple[str, ...]:
    return tuple(f"s3://{intent.access.bucket}/{key}" for key in intent.files.list_keys())


def _find_shown(control: Control, intent: Intent, switch: Switch) -> Intent | None:
    """Return the refresh whose files readers see after the change: the change itself, or the one that an undo shows
    again.
    """
    if intent.effects.adds:
        return intent
    if switch.job_id is None or switch.attempt is None:
        return None
    shown = control.find_intent(switch.job_id, switch.attempt)
    if shown is None:
        raise PendingUnrecoverableError(
            f"the intent of load {switch.job_id!r} of {control.table_id}, which {intent.job_id!r} "
            "shows again, is not there.",
            remedy="Restore it from its bucket's versions.",
        )
    return shown


def _encode(content: Mapping[str, Any]) -> bytes:
    # In one line, as Spark reads JSON.
    return json.dumps(content).encode() + b"\n"


def _parse(body: bytes) -> Latest | None:
    """Return the content; None where it is not such an object, or does not say whose it is."""
    try:
        content = json.loads(body)
        latest = Latest(**{name: content[name] for name in Latest._fields} | {"files": tuple(content["files"])})
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    has_owner = all(isinstance(text, str) for text in (latest.pipeline, latest.table, latest.state, *latest.files))
    return latest if has_owner and type(latest.change) is int else None


def _describe_unknown(key: str, body: bytes) -> str:
    return f"{key} names the files that readers are to read, and does not say whose they are: {body[:80]!r}."
