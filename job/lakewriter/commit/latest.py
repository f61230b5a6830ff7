"""Write the object that tells readers of a bucket which files of a table to read: those of its last full refresh.

Listing the table's folder shows files of several refreshes, since the files of the refresh before are kept for a while.
"""

import json
from typing import Any

from lakewriter.commit.backoff import write
from lakewriter.commit.changes import list_effects
from lakewriter.commit.control import Control
from lakewriter.commit.intent import Intent, Switch
from lakewriter.commit.store import Store
from lakewriter.errors import CommitUnknownError, PendingUnrecoverableError


def write_latest(control: Control, intent: Intent, number: int) -> None:
    """Make the object name the files after change ``number`` of the table, unless it already names those, or a later
    change's."""
    if intent.switch is None or intent.switch.latest is None:
        return
    key, body = intent.switch.latest, _encode(_make_content(control, intent, intent.switch, number))

    def replace() -> bool | None:
        stored = control.store.get(key)
        if stored is None:
            return control.store.create(key, body) is not None or None
        if _read_change(key, stored[0]) >= number:
            return True
        return control.store.replace(key, body, stored[1]) is not None or None

    write(key, replace, control.pause)


def find_last_change(store: Store, key: str) -> tuple[int, str]:
    """Return the number of the change that wrote the object, and its load; 0 where there is no such object."""
    stored = store.get(key)
    if stored is None:
        return 0, ""
    return _read_change(key, stored[0]), str(json.loads(stored[0]).get("load", ""))


def _make_content(control: Control, intent: Intent, switch: Switch, number: int) -> dict[str, Any]:
    shown = _find_shown(control, intent, switch)
    bucket = intent.access.bucket
    return {
        "version": 1,
        "change": number,
        "generation": switch.after,
        "job_id": shown.job_id if shown is not None else None,
        "load": intent.load,
        "rows": shown.rows if shown is not None else 0,
        "files": [f"s3://{bucket}/{key}" for key in (shown.files.list_keys() if shown is not None else ())],
    }


def _find_shown(control: Control, intent: Intent, switch: Switch) -> Intent | None:
    """Return the refresh whose files readers see after the change: the change itself, or the one that an undo shows
    again.
    """
    if list_effects(intent).adds:
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


def _encode(content: dict[str, Any]) -> bytes:
    # In one line, as Spark reads JSON.
    return json.dumps(content).encode() + b"\n"


def _read_change(key: str, body: bytes) -> int:
    try:
        change = json.loads(body)["change"]
    except (ValueError, KeyError, TypeError):
        change = None
    if not isinstance(change, int):
        raise CommitUnknownError(
            f"{key} names the files that readers are to read, and holds something else: {body[:80]!r}.",
            remedy="Move the object away, and run the same job id again: it is written anew.",
        )
    return change
