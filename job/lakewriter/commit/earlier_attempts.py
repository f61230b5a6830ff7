"""Read how other attempts of a load name their files, so that their staged uploads can be found."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Self

from pydantic import field_validator

from lakewriter.commit.history import History
from lakewriter.commit.store import Store
from lakewriter.control_object import ControlObject, parse, sparse
from lakewriter.naming import ControlKeys
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.quarantine_names import QuarantineNames


class BegunTable(ControlObject):
    """Where an attempt puts a table's files, and the regular expression that their keys match.

    ``shared`` is true where another load of the table may write the same keys. ``quarantine`` is the folder of its
    files with bad rows. Their keys match ``quarantine_pattern``, and no other attempt's keys do.
    """

    location: str
    pattern: str
    shared: bool = False
    quarantine: str = sparse("")
    quarantine_pattern: str = sparse("")

    @field_validator("pattern", "quarantine_pattern")
    @classmethod
    def _is_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{value!r} is no regular expression ({error})") from error
        return value

    @classmethod
    def of(cls, names: ObjectNames) -> Self:
        """Return what an attempt's record says of the files that have these names."""
        begun = cls(location=names.location, pattern=names.pattern().pattern, shared=names.shared)
        if (quarantine := QuarantineNames.of(names)) is None:
            return begun
        # Rule quarantine-pattern
        return begun.model_copy(update={"quarantine": quarantine.folder, "quarantine_pattern": quarantine.pattern})


class BeginRecord(ControlObject):
    """The content of ``begin.json``: how an attempt names its files, by table id."""

    version: Literal[1] = 1
    attempt: str
    started: datetime
    tables: Mapping[str, BegunTable]


@dataclass
class _Job:
    """The begin records of one load's other attempts: records of all tables, and records of single tables."""

    job_id: str
    attempt: str
    records: dict[str, BeginRecord] = field(default_factory=dict)
    of_tables: dict[str, dict[str, BeginRecord]] = field(default_factory=dict)


class BeginRecords:
    """The begin records of the load that a process works on, listed and read once for all tables of the pipeline.

    Otherwise each of thousands of tables would list thousands of keys.
    """

    def __init__(self, store: Store, keys: ControlKeys, history: History) -> None:
        self._store, self._keys, self._history = store, keys, history
        self._job: _Job | None = None

    def read(self, table_id: str, job_id: str, attempt: str, registered: str | None = None) -> list[BeginRecord]:
        """Return the records of the job's attempts other than ``attempt`` that may name files of the table;
        ``PENDING_UNRECOVERABLE`` for one that cannot be read.

        ``registered`` is the attempt that the table's state names: it may have begun, or named this table's files
        anew, since the listing.
        """
        # Tables that load in parallel may each list here, which costs less than waiting for one another.
        job, other = self._job, registered if registered != attempt else None
        # Rule begun-since-listing
        if job is None or (job.job_id, job.attempt) != (job_id, attempt) or (other and other not in job.records):
            job = self._job = self._list(job_id, attempt)
        # Rule begun-named-anew
        elif other:
            self._read_again(job, table_id, other)
        return [*job.records.values(), *job.of_tables.get(table_id, {}).values()]

    def _list(self, job_id: str, attempt: str) -> _Job:
        job = _Job(job_id, attempt)
        for item in self._history.list_load(job_id).select("begin"):
            if item.attempt == attempt:
                continue
            for record in self.read_at(item.entry.key):
                if item.table_id:
                    job.of_tables.setdefault(item.table_id, {})[item.entry.key] = record
                else:
                    job.records[item.attempt] = record
        return job

    def _read_again(self, job: _Job, table_id: str, registered: str) -> None:
        key = self._keys.table_begin(job.job_id, registered, table_id)
        tables_read = job.of_tables.setdefault(table_id, {})
        if key not in tables_read and any(entry.key == key for entry in self._store.list_entries(key, limit=1)):
            tables_read.update((key, record) for record in self.read_at(key))

    def read_at(self, key: str) -> Iterator[BeginRecord]:
        """Yield the record at the key; none where it is gone. ``PENDING_UNRECOVERABLE`` where it cannot be read."""
        content = self._store.get(key)
        if content is not None:
            yield parse(BeginRecord, key, content[0])
