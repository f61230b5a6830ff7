"""Every physical and logical name the job and the stacks share; standard library only."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_NAME: Final = 255
"""Glue's limit for database, table and column names, in characters."""

CONTROL_DIRECTORY: Final = "_lakewriter"
QUARANTINE: Final = "__quarantine"
"""Ends the name and the folder of the table that holds another one's bad rows."""
LOAD_METADATA: Final = "lakewriter-load"
"""Object metadata key; its value is ``{pipeline}/{job_id}/{attempt}``."""

TABLE_METADATA: Final = "lakewriter-table"
"""Object metadata key: the table's id, where several tables may lie side by side."""
GENERATION_METADATA: Final = "ab-generation-id"
"""Object metadata key: the number of the full refresh, as Airbyte writes it."""

DELETED: Final = "__lakewriter_deleted"
"""The boolean column that a feed adds last when the table has a ``deleted`` expression; it is not written."""
ORDINAL: Final = "__lakewriter_ordinal"
"""The last column of rows that are merged and written in another order than their source's files have: the number of
each row, which grows in the order of the files and of the rows in them."""
ORDINAL_ID: Final = 2147483446
"""Its field id in Iceberg's files, which no table's column has: readers pass over it. Ids above it are reserved."""
UNCHANGED: Final = "__lakewriter_unchanged"
"""The last column of rows whose change events may leave unchanged values out. As JSON it has the names of the columns
that are null for that reason, after ``true`` if the event gives the row another key, otherwise ``false``. It is null
for a row that has all values."""
UNCHANGED_ID: Final = 2147483445
"""Its field id, likewise."""
CHECK_TABLE: Final = "lakewriter_check_"
"""Begins the names of tables that ``lakewriter check`` tries to write, and that never exist."""

PIPELINE: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

LATEST: Final = "_latest/files.json"
"""The object that names the files of a table's last full refresh. Engines that list a table leave out folders whose
names begin with ``_``; Spark reads no file with such a name, even where it is asked for it."""


_GENERATION = re.compile(r"g(\d{10})")

_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
_RUNS = re.compile(r"_+")
_WHITE = re.compile(r"[ \t\n\x0b\f\r]+")
"""White space as Java's ``\\s`` has it; decomposed for compatibility, the other spaces are blanks."""
_SAFE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def normalise(name: str) -> str:
    """Return the ASCII identifier for a source name.

    - accents are dropped; every other character outside ``[A-Za-z0-9_]`` becomes ``_``
    - runs of ``_`` become one
    - a leading digit gets ``_`` in front; an empty name becomes ``_``
    - a name over 255 characters is cut, its tail replaced by a hash that keeps it distinct
    """
    safe = _RUNS.sub("_", _UNSAFE.sub("_", drop_marks(name))) or "_"
    if safe[0].isdigit():
        safe = "_" + safe
    return cut(safe, distinct=name)


def cut(name: str, *, distinct: str | None = None) -> str:
    """Cut ``name`` to 255 characters; a hash of ten hex digits replaces its tail."""
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256((distinct or name).encode()).hexdigest()[:10]
    return f"{name[: MAX_NAME - 11]}_{digest}"


@dataclass(frozen=True)
class NameRule:
    """The rule for writing the names of columns, and of the fields of one struct.

    ``make`` gives the name that a source name has by itself; ``folds_case`` says that no two names may differ by case
    alone, ``is_ascii`` that a name has ASCII letters, digits and ``_`` alone, and no digit first.
    """

    make: Callable[[str], str]
    folds_case: bool
    is_ascii: bool

    def takes(self, name: str) -> bool:
        """Return whether a column may be written as ``name``."""
        return bool(name) and (not self.is_ascii or _SAFE.fullmatch(name) is not None)

    def fold(self, name: str) -> str:
        """Fold a name: names with the same result may not be side by side."""
        return name.lower() if self.folds_case else name

    def number(self, name: str, number: int) -> str:
        """Return ``name`` with a number after it, as the second and later of equal names get."""
        suffix = f"_{number}"
        return (name[: MAX_NAME - len(suffix)] if self.folds_case else name) + suffix

    def make_distinct(self, names: Iterable[str], taken: Iterable[str]) -> list[str]:
        """Return ``names`` made distinct: the first keeps its name, later ones get ``_1``, ``_2``.

        A number that gives a name which is itself taken is skipped. ``taken`` names are taken from the start.
        """
        folded = {self.fold(name) for name in taken}
        # Where the last equal name ended: all before it is taken.
        numbers: dict[str, int] = {}
        result = []
        for name in names:
            candidate, number = name, numbers.get(name, 0)
            while self.fold(candidate) in folded:
                number += 1
                candidate = self.number(name, number)
            folded.add(self.fold(candidate))
            numbers[name] = number
            result.append(candidate)
        return result

    def name_all(self, names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
        """Return the written names of ``names``, in order, of a table that has no names yet."""
        return self.make_distinct(map(self.make, names), taken)


def _make_avro_name(name: str) -> str:
    """Return a name that Avro takes: accents dropped, ``_`` for a run of white space, for what is no letter, digit or
    ``_``, and in front of a digit."""
    safe = _UNSAFE.sub("_", _WHITE.sub("_", drop_marks(name))) or "_"
    return f"_{safe}" if safe[0].isdigit() else safe


NORMALISED: Final = NameRule(normalise, folds_case=True, is_ascii=True)
"""Names that every engine takes, in the source's case."""
AS_IN_SOURCE: Final = NameRule(str, folds_case=True, is_ascii=False)
"""The source's names, made distinct as engines tell them apart."""
AVRO_SAFE: Final = NameRule(_make_avro_name, folds_case=False, is_ascii=True)
"""Names that Avro takes, as Airbyte writes them to Avro and Parquet."""
AS_TEXT: Final = NameRule(str, folds_case=False, is_ascii=False)
"""The keys of documents, as they are."""


def make_unique(names: Iterable[str], *, reserved: Iterable[str] = ()) -> list[str]:
    """Return ``names`` made distinct without regard to case; ``reserved`` names are taken from the start."""
    return AS_IN_SOURCE.make_distinct(names, reserved)


def name_columns(names: Sequence[str], *, reserved: Iterable[str] = ()) -> list[str]:
    """Return the normalised, distinct column names, in source order and in the source's case."""
    return NORMALISED.name_all(names, reserved)


def name_avro_fields(names: Sequence[str], *, reserved: Iterable[str] = ()) -> list[str]:
    """Return names that Avro takes, in source order, made distinct with regard to case."""
    return AVRO_SAFE.name_all(names, reserved)


def name_schema(*parts: str) -> str:
    """Return the schema (and Glue database) from its parts, without blank ones; blank when all are."""
    filled = [part.strip() for part in parts if part.strip()]
    return normalise("_".join(filled)).lower() if filled else ""


def name_tables(names: Sequence[str], *, reserved: Iterable[str] = ()) -> list[str]:
    """Return the distinct table names of one schema; lower case, since Glue folds case and paths must equal it."""
    return make_unique([normalise(name).lower() for name in names], reserved=reserved)


def join_key(*segments: str) -> str:
    """Return an object key: empty segments are left out with their slash, runs of ``/`` become one."""
    return "/".join(part for segment in segments for part in segment.split("/") if part)


def describe_unfit_segment(path: str) -> str | None:
    """Return why ``path``, a key or a part of one, may not be in a key, as a clause for a message; None where it may.

    Empty segments are not counted: ``join_key`` leaves them out. Any other segment, read as ``normalise`` reads it, so
    that a full-width dot is a dot and a full-width slash a slash, is unfit

    - with a control character, a line separator or a code point that XML cannot hold
    - if it is ``.`` or ``..``, or nothing
    - if it begins with the control folder's name
    """
    for segment in filter(None, path.split("/")):
        odd = next((character for character in segment if _is_unprintable(character)), None)
        if odd is not None:
            return f"has the control character U+{ord(odd):04X}"
        for part in drop_marks(segment).split("/"):
            if part in {"", ".", ".."}:
                return f"has the segment {segment!r}, which names no folder of its own"
            if part.startswith(CONTROL_DIRECTORY):
                return f"has the segment {segment!r}, and what begins with {CONTROL_DIRECTORY!r} is for control objects"
    return None


def _is_unprintable(character: str) -> bool:
    # S3 takes them, and then neither its XML listings nor engines give the key back as it is.
    return unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} or character in "\ufffe\uffff"


def drop_marks(text: str) -> str:
    """Return ``text`` decomposed for compatibility, without combining marks: those of Unicode's category M."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.category(c).startswith("M"))


def name_generation(number: int) -> str:
    """Name the folder of a full refresh's files: ``g`` and ten digits."""
    return f"g{number:010d}"


def parse_generation(folder: str) -> int | None:
    """Return the number in the name of a refresh's folder; None for any other name."""
    match = _GENERATION.fullmatch(folder)
    return int(match[1]) if match is not None else None


class ControlKeys:
    """Keys of the control objects of one pipeline, under ``{prefix}/_lakewriter/{pipeline}/``.

    No two keys are equal, whatever tables and loads are called: a key with a table's name has a folder or an ending
    that no other kind of key has there.
    """

    def __init__(self, prefix: str, pipeline: str) -> None:
        self.pipeline = pipeline
        self.pipelines = join_key(prefix, CONTROL_DIRECTORY) + "/"
        """Begins the control objects of every pipeline of this prefix, each of which has a folder there."""
        self.root = self.pipelines + pipeline

    @property
    def writers(self) -> str:
        """Begins the keys of the records of who writes each table; no pipeline's name begins with ``_``."""
        return f"{self.pipelines}_writers/"

    @property
    def continuous(self) -> str:
        """Return the key of the state of the continuous run, or of the end of the last one."""
        return f"{self.root}/continuous.json"

    def state(self, table_id: str) -> str:
        """Return the key of the state of one table; ``table_id`` is ``{schema}.{table}``."""
        return self.state_of(f"{self.root}/", table_id)

    def state_of(self, folder: str, table_id: str) -> str:
        """Return the key of the state of the same table in the pipeline whose ``folder`` this is."""
        return f"{folder}tables/{table_id}/state.json"

    def inputs(self, table_id: str, name: str) -> str:
        """Return the key of an object with some of the source files that loads of a table have read."""
        return f"{self.root}/tables/{table_id}/inputs/{name}.jsonl.gz"

    def load(self, job_id: str) -> str:
        """Return the directory of one load, without a slash at its end."""
        return f"{self.root}/loads/{job_id}"

    def load_of(self, folder: str, job_id: str) -> str:
        """Return the directory of the load with the same job id in the pipeline whose ``folder`` this is."""
        return f"{folder}loads/{job_id}/"

    def report(self, job_id: str, table_id: str) -> str:
        """Return the key of a table's report: it exists when the table of this load is done."""
        return f"{self.load(job_id)}/{table_id}.report.json"

    def begin(self, job_id: str, attempt: str) -> str:
        """Return the key of the record that an attempt writes when it begins."""
        return f"{self.load(job_id)}/{attempt}/begin.json"

    def table_begin(self, job_id: str, attempt: str, table_id: str) -> str:
        """Return the key of the begin record of one table that could not begin at the attempt's time."""
        return f"{self.load(job_id)}/{attempt}/begin/{table_id}.json"

    def intent(self, job_id: str, attempt: str, table_id: str) -> str:
        """Return the key of the intent: all that is needed to publish one table of one load."""
        return f"{self.load(job_id)}/{attempt}/tables/{table_id}.json"

    def decision(self, job_id: str, attempt: str, group: str = "") -> str:
        """Return the key of the decision whether an attempt's intents are bound: those of a sync's tables, with the
        source's state, or those of the ``group`` of tables that is named after one of them."""
        return f"{self.load(job_id)}/{attempt}/{f'decided/{group}' if group else 'sync/decision'}.json"

    def completion(self, job_id: str, attempt: str, group: str = "") -> str:
        """Return the key of the record whether the files of all these tables are complete."""
        return f"{self.load(job_id)}/{attempt}/{f'completed/{group}' if group else 'sync/completion'}.json"

    def failure(self, job_id: str, attempt: str, table_id: str) -> str:
        """Return the key of the reason why an intent was withdrawn."""
        return f"{self.load(job_id)}/{attempt}/failed/{table_id}.json"

    def receipts(self, job_id: str, attempt: str, table_id: str) -> str:
        """Return the prefix of the keys of the parts that hold the receipts of many files."""
        return f"{self.load(job_id)}/{attempt}/receipts/{table_id}/"

    def uploads(self, job_id: str, attempt: str, table_id: str) -> str:
        """Return the prefix of the keys of the notes of an attempt's uploads to a bucket that lists none."""
        return f"{self.load(job_id)}/{attempt}/uploads/{table_id}/"

    def deleted_keys(self, job_id: str, attempt: str, table_id: str) -> str:
        """Return the key of the keys that were deleted from a merged table, with their order."""
        return f"{self.load(job_id)}/{attempt}/deleted/{table_id}.parquet"

    def outcome(self, job_id: str, attempt: str) -> str:
        """Return the key of an attempt's outcome: code, message, whether a retry helps."""
        return f"{self.load(job_id)}/{attempt}/outcome.json"

    def record(self, job_id: str, attempt: str) -> str:
        """Return the key of an attempt's record, for readers of the pipeline's history."""
        return f"{self.load(job_id)}/{attempt}/run/record.json"

    def page(self, job_id: str) -> str:
        """Return the key of the record's page for a browser, of the load's last attempt."""
        return f"{self.load(job_id)}/report.html"

    def repeat(self, job_id: str) -> str:
        """Return the key of the list of loads that this one repeats: it exists once the last of them is undone."""
        return f"{self.root}/repeats/{job_id}.json"

    def sync_number(self, number: int) -> str:
        """Return the key of the record that assigns a counted sync number to a load."""
        return f"{self.sync_numbers}{number:010d}.json"

    def own_sync_number(self, job_id: str) -> str:
        """Return the key of the counted sync number of one load."""
        return f"{self.load(job_id)}/sync.json"

    @property
    def sync_numbers(self) -> str:
        """Begins the keys of claimed sync numbers."""
        return f"{self.root}/syncs/"

    def run(self, name: str) -> str:
        """Return the key of the outcome of an attempt, under a name that the caller has chosen."""
        return f"{self.runs}{name}.json"

    @property
    def runs(self) -> str:
        """Begins the keys of the outcomes that ``run`` names."""
        return f"{self.root}/runs/"
