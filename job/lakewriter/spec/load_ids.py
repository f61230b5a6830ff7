"""Make the job ids of loads and of other changes, and know which of them are no caller's; standard library only."""

import hashlib
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

JOB_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_DIGEST: Final = 32
_READABLE: Final = 80 - _DIGEST - 2
_MOST = 80
"""The characters that ``JOB_ID`` takes."""
_REPEAT = re.compile(r"(?P<base>.+)\.r(?P<number>[2-9]|[1-9]\d+)")
UNDO: Final = "undo."
"""Begins the job ids of undos, which no load may have."""
REPLAY: Final = "replay."
"""Begins the job ids of replays, which no other load may have."""
COMPACT: Final = "compact."
"""Begins the job ids of compactions, which no load may have."""
EXPIRE: Final = "expire."
"""Begins the job ids of expiries, which no load may have."""
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")
_DIGEST_AT_END = re.compile(rf"--[0-9a-f]{{{_DIGEST}}}$")


@dataclass(frozen=True)
class JobIds:
    """The job ids of one kind of change that no caller chooses. All begin with ``start``, and no other job id may.

    kind            the kind of their intents
    one, many       what such a change is called, and several of them
    why_not_undone  why it cannot be undone, as it follows what the change is called; blank where a search finds that
    """

    start: str
    kind: str
    one: str
    many: str
    why_not_undone: str = ""

    @property
    def are_loads(self) -> bool:
        """Return whether such changes load rows."""
        return self.kind == "load"


JOB_IDS: Final = (
    JobIds(UNDO, "undo", "an undo", "undos"),
    JobIds(REPLAY, "load", "a replay", "replays"),
    JobIds(
        COMPACT,
        "compact",
        "a compaction",
        "compactions",
        why_not_undone="which changes no rows: there is nothing to undo",
    ),
    JobIds(
        EXPIRE,
        "expire",
        "an expiry",
        "expiries",
        why_not_undone="which changes no rows: there is nothing to undo",
    ),
)


def make_scheduled_job_id(pipeline: str, at: datetime) -> str:
    """Return the job id of the load that a schedule starts at ``at``: a UUIDv5 of both, so that a start delivered twice
    is one load.
    """
    moment = at.astimezone(UTC).isoformat(timespec="seconds")
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"lakewriter://{pipeline}/{moment}"))


def make_job_id(run_id: str) -> str:
    """Return the job id of an orchestrator's run: the same for the same run id, and another for every other one.

    - a run id that is of the form of a job id is taken as it is
    - for any other, or one over 80 characters, the readable part comes first: every character outside
      ``[A-Za-z0-9._-]`` becomes ``-``, what precedes the first letter or digit is left out, and the rest is cut at 46;
      then ``--`` and the first 32 hex digits of the SHA-256 of the run id in UTF-8
    - a run id that ends like such a job id is treated likewise, so that no two run ids get one job id
    """
    if JOB_ID.fullmatch(run_id) and not _DIGEST_AT_END.search(run_id):
        return run_id
    readable = _UNFIT.sub("-", run_id).lstrip("._-")[:_READABLE] or "run"
    return f"{readable}--{hashlib.sha256(run_id.encode()).hexdigest()[:_DIGEST]}"


def find_job_ids(job_id: str) -> JobIds | None:
    """Return the kind of change that alone has such a job id; None for a load whose caller has chosen it."""
    return next((ids for ids in JOB_IDS if job_id.startswith(ids.start)), None)


def is_id_of_load(job_id: str) -> bool:
    """Return whether the change with the job id is a load."""
    ids = find_job_ids(job_id)
    return ids is None or ids.are_loads


def make_undo_job_id(job_id: str) -> str:
    """Return the job id of the undo of a load: ``undo.{job_id}``, shortened by a digest where it would be too long."""
    return _shorten(UNDO, job_id, "")


def make_replay_job_id(files: Iterable[tuple[str, str]]) -> str:
    """Return the job id of the replay of ``files`` in the quarantine, each given by key and etag: the same files are
    the same load.
    """
    return f"{REPLAY}{hashlib.sha256(repr(sorted(files)).encode()).hexdigest()[:_DIGEST]}"


def make_compaction_job_id(table_id: str, number: int) -> str:
    """Return the job id of a table's compaction, its change ``number``: ``compact.{table}.{number}``."""
    return _shorten(COMPACT, _UNFIT.sub("_", table_id), f".{number}")


def make_expiry_job_id(table_id: str, number: int) -> str:
    """Return the job id of an expiry of a table's snapshots, its change ``number``: ``expire.{table}.{number}``."""
    return _shorten(EXPIRE, _UNFIT.sub("_", table_id), f".{number}")


def make_next_job_id(job_id: str) -> str:
    """Return the job id that loads again what an undo of ``job_id`` took back: ``{job_id}.r2``, then ``.r3``."""
    match = _REPEAT.fullmatch(job_id)
    base, number = (match["base"], int(match["number"]) + 1) if match else (job_id, 2)
    return _shorten("", base, f".r{number}")


def is_next_job_id(job_id: str) -> bool:
    """Return whether the job id has the form that only a load after an undo has."""
    return _REPEAT.fullmatch(job_id) is not None


def _shorten(prefix: str, text: str, suffix: str) -> str:
    if len(prefix + text + suffix) <= _MOST:
        return prefix + text + suffix
    beginning = text[: _MOST - len(prefix) - len(suffix) - _DIGEST - 2]
    return f"{prefix}{beginning}--{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]}{suffix}"
