"""The auditor: it shares no code with the product, watches every change as it is made, and judges what is left.

It knows the control objects by their documentation, the sources by their book of readings, and the objects by reading
them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from lakewriter.report import ABANDONED_BLIND
from tests.simulation.books import (
    CONTROL,
    LOAD,
    QUARANTINE,
    Book,
    Place,
    chain_of,
    ended_together,
    is_compaction,
    is_control,
    is_replay,
    is_undo,
    keys_of,
    parsed,
    pending_of,
    receipts_of,
    rows_of,
)
from tests.simulation.bucket import Bucket, Change, Stored
from tests.simulation.failures import WITHDRAWN
from tests.simulation.glue import Catalog
from tests.simulation.iceberg import list_delete_files, list_needed, metadata_of
from tests.simulation.merged import MergedAuditor
from tests.simulation.quarantine_audit import QuarantineAuditor
from tests.simulation.readers import Readers
from tests.simulation.rows_audit import RowsAuditor
from tests.simulation.source import Sources
from tests.simulation.state_rules import faults_of, faults_of_rebuilt
from tests.simulation.sync_audit import SyncAuditor

REPLACED: Final = ("/runs/", "/continuous.json", "/owners/", "/_writers/")
"""Control objects beside the states that may be written again."""


ORPHANED: Final = timedelta(days=31)
"""As the maintenance of the tables says."""
KEPT: Final = timedelta(days=30)
"""For how long the records of loads are to be there."""


@dataclass
class Auditor:
    """``findings`` says what is not as it should be, each once; ``spoiled`` parts are kept as they were."""

    bucket: Bucket
    catalog: Catalog
    sources: Sources
    places: list[Place]
    strangers: dict[str, bytes] = field(default_factory=dict)
    are_strangers_gone: bool = False
    spoiled: dict[str, Stored] = field(default_factory=dict)
    ever_spoiled: set[str] = field(default_factory=set)
    lost_intents: set[str] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)
    books: dict[str, Book] = field(default_factory=lambda: defaultdict(Book))
    swept: set[str] = field(default_factory=set)
    lost_uploads: bool = False
    is_swept_early: bool = False
    has_ended: bool = False
    """Whether a load began under an id in the moment in which it was forgotten. Nothing is judged from then on."""
    foreign_columns: set[tuple[tuple[str, str], str]] = field(default_factory=set)
    foreign_properties: set[tuple[tuple[str, str], str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.readers = Readers(self.bucket, self.catalog, self.sources, self.places, self.strangers, self.find)
        self.quarantines = QuarantineAuditor(
            self.bucket, self.sources, self.places, self.books, self.readers, self.find
        )
        self.syncs = SyncAuditor(self.sources, self.places, self.books, self.readers, self.find)
        self.merged = MergedAuditor(self.bucket, self.catalog, self.sources, self.books, self.find)
        self.rows = RowsAuditor(self.sources, self.books, self.quarantines, self.syncs, self.merged, self.find)

    def find(self, text: str) -> None:
        """One more finding."""
        if text not in self.findings and not self.has_ended:
            self.findings.append(text)

    # -- while it happens

    def changed(self, change: Change) -> None:
        """A change of the bucket."""
        if change.after is not None and not _is_fit(change.key):
            self.find(f"a key that some readers cannot read: {change.key!r}")
        place = next((place for place in self.places if place.state == change.key), None)
        if place is not None:
            self._state_changed(place, change)
        elif is_control(change.key):
            self._control_changed(change)
        elif change.key.endswith("/_latest/files.json"):
            self._judge_switches([own for own in self.places if own.latest == change.key])
        elif "/metadata/" not in change.key:
            self._data_changed(change)
        else:
            self._metadata_changed(change)

    def _metadata_changed(self, change: Change) -> None:
        if change.after is None:
            self._judge_needed(change.key)
        elif change.key.endswith(".metadata.json"):
            for snapshot in parsed(change.after).get("snapshots", ()):
                self.merged.snapshots.setdefault(snapshot["snapshot-id"], snapshot)

    def _judge_needed(self, key: str) -> None:
        """Judge an object that is deleted: none that a snapshot, a branch, a tag or the metadata's log names goes."""
        for place in self.places:
            if place.catalog == "iceberg" and key.startswith(f"{place.path}/"):
                if key in list_needed(self.catalog, self.bucket, place.names) and key not in self.spoiled:
                    self.find(f"{place.pipeline}/{place.table}: deleted, and its table's metadata name it: {key}")
                pending = pending_of(self.bucket.objects, place)
                if not pending or pending["phase"] != "uploaded" or is_compaction(pending["job_id"]):
                    continue
                if key in {own["key"] for own in receipts_of(self.bucket.objects, place, pending) or ()}:
                    self.find(f"{place.pipeline}/{place.table}: deleted, and a pending intent names it: {key}")

    def _state_changed(self, place: Place, change: Change) -> None:
        if change.after is None:
            if self.books[place.state].lost is None:
                self.find(f"state deleted: {change.key}")
            return
        before = parsed(change.before) if change.before else {}
        after = parsed(change.after)
        lost, self.books[place.state].lost = self.books[place.state].lost, None
        if lost is not None:
            before = self._judge_rebuilt(place, lost, after)
        for text in faults_of(before, after):
            self.find(f"state of {place.table}: {text}")
        self._note_attempts(place, before, after)
        # A refresh that is given up before readers see it uses its number.
        is_given_up = (after["pending"] or {}).get("phase") == "aborting"
        is_blind = self._is_blind_undo(place, before, after)
        if after["committed"] > before.get("committed", 0) and not is_given_up and not is_blind:
            if is_compaction((before.get("pending") or {}).get("job_id", "")):
                self.merged.judge_compaction(place, before, after, self.readers.list_all()[place.state])
            else:
                self._note_commit(place, before, after)

    def _is_blind_undo(self, place: Place, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Whether an undo is closed without its intent: what it has taken out of the load is not known, and it may be
        done again."""
        job = (before.get("pending") or {}).get("job_id", "")
        is_closed = not after["pending"] and is_undo(job)
        new = after["resets"][len(before.get("resets", ())) :]
        is_so = is_closed and any("without its intent" in reset["what"] for reset in new)
        if is_so:
            self.books[place.state].given_up.add(job.removeprefix("undo."))
        return is_so

    def _judge_rebuilt(self, place: Place, lost: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
        """The state that the new one follows."""
        if not any("rebuilt" in reset["what"] for reset in after["resets"]):
            if lost["committed"]:
                self.find(f"{place.pipeline}/{place.table}: a load began anew where the state was lost")
            return {}
        old = lost["pending"] or {"job_id": "", "attempt": ""}
        if is_compaction(old["job_id"]) and self._report(place, old["job_id"]) is not None:
            # It may have replaced nothing: its report alone says that it was done.
            lost, old = lost | {"committed": lost["committed"] + 1, "pending": None}, {"job_id": "", "attempt": ""}
        load = f"{place.pipeline}/{old['job_id']}/{old['attempt']}"
        seen = [key for key, own in self.bucket.objects.items() if own.metadata.get(LOAD) == load]
        # The files of the load's other tables are no sign of this one's.
        folders = (f"{place.path}/", f"{place.quarantine}/" if place.quarantine else f"{place.path}/")
        own = [key for key in seen if key.startswith(folders)]
        is_visible = any(not is_control(key) and "/metadata/" not in key for key in own)
        if not place.exclusive and ended_together(self.bucket.objects, place, lost, after):
            lost = lost | {"last_job": after["last_job"]}
        if self.are_strangers_gone and lost["resets"]:
            # The counter may have been behind a stranger's object when the lost state was rebuilt for its part.
            lost = lost | {"counter": 0}
        for text in faults_of_rebuilt(lost, after, is_visible=is_visible):
            self.find(f"rebuilt state of {place.pipeline}/{place.table}: {text}")
        kept = {name: after[name] for name in ("counter", "backfill", "sync")}
        is_bound = (after["pending"] or {}).get("job_id") == old["job_id"]
        pending = lost["pending"] if is_bound or after["committed"] > lost["committed"] else None
        if pending is not None:
            pending = pending | {"phase": (after["pending"] or {"phase": "uploaded"})["phase"]}
        kept |= {"cursor": lost["cursor"]} if pending is not None else {}
        return kept | {"committed": lost["committed"], "write": 0, "pending": pending, "resets": after["resets"]}

    def _note_attempts(self, place: Place, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        book, old, new = self.books[place.state], before.get("pending") or {}, after.get("pending") or {}
        if new:
            book.bound.add((new["job_id"], new["attempt"]))
        for job, running in after["running"].items():
            if (job, running["attempt"]) not in book.registered:
                self.quarantines.registered(place, job, running["attempt"], before.get("running", {}))
            book.registered.setdefault((job, running["attempt"]), self.bucket.made)
        if len(after["resets"]) > len(before.get("resets", ())):
            what = after["resets"][-1]["what"]
            book.resets += "abandoned" not in what
            if "abandoned" in what and what.endswith("(uploaded)") and old:
                book.given_up.add(old["job_id"])

    def _note_commit(self, place: Place, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        book, old = self.books[place.state], before.get("pending") or {}
        if not old:
            self.find(f"state of {place.table}: load {after['last_job']} committed and was not pending")
        is_again = after["last_job"] in {job for job, _ in book.commits}
        if is_again and any(f"{place.root}/loads/{after['last_job']}/" in key for key in self.swept):
            # Its first object was written after the sweep had listed the others, all older than they are kept.
            self.has_ended = True
        book.commits.append((after["last_job"], old.get("attempt", "")))
        if is_undo(after["last_job"]):
            new = {own["job_id"] for own in after["undone"]} - {own["job_id"] for own in before.get("undone", ())}
            if after["last_job"] not in {f"undo.{job}" for job in new}:
                self.find(f"{place.pipeline}/{place.table}: {after['last_job']} has undone {sorted(new)}")
            book.undone |= new
        self.rows.judge_number(place, after["last_job"], (self._report(place, after["last_job"]) or {}).get("sync_id"))
        self._note_closing(place, after["last_job"])
        self._judge_mate(place, after["last_job"])
        if place.quarantine:
            self.quarantines.committed(place, before, after)
        seen = self.readers.list_all()[place.state]
        if place.has_cursor and not place.quarantine:
            self.rows.judge_start(place, after["last_job"], before.get("cursor"), seen)
        # At this moment, since a full refresh that comes later would hide what this one has left.
        self.rows.judge(place, seen)

    def _judge_mate(self, place: Place, job: str) -> None:
        """What a table commits its history has too, or is bound to have; and the other way round. A load whose intent
        is lost in one of them, once the files of both are complete, ends there, and is loaded there again."""
        loaded = job.removeprefix("undo.")
        for mate in self.places:
            book, pending = self.books[mate.state], pending_of(self.bucket.objects, mate)
            if mate.source != place.source or mate == place or book.lost is not None or loaded in book.given_up:
                continue
            is_there = self._is_done_in(mate, job)
            if is_undo(job):
                is_there = loaded in book.undone or loaded not in {own for own, _ in book.commits}
            is_there |= any(key.startswith(f"{mate.root}/loads/{job}/") for key in self.lost_intents)
            if not is_there and (pending.get("job_id") != job or pending["phase"] == "aborting"):
                self.find(f"{place.pipeline}/{place.table}: {job} is committed, and not in {mate.table}")

    def _note_closing(self, place: Place, job: str) -> None:
        """Note how a load was closed by its report: the state's note has the phase in which a person met it."""
        book, report = self.books[place.state], self._report(place, job)
        notes = str((report or {}).get("notes"))
        if "abandoned" in notes:
            book.given_up.add(job)
        elif report is not None and place.merges is not None:
            # Nothing was there of an attempt before this one that was given up.
            book.given_up.discard(job)
        book.blind |= {job} if ABANDONED_BLIND in notes else set()

    def _control_changed(self, change: Change) -> None:
        replaced = change.before is not None and change.after is not None and change.before.body != change.after.body
        if replaced and change.key not in self.spoiled and not any(mark in change.key for mark in REPLACED):
            self.find(f"control object replaced: {change.key}")
        if change.after is None and "/owners/" in change.key:
            self.find(f"record of owners deleted: {change.key}")
        if (
            change.after is None
            and "/loads/" in change.key
            and change.key not in self.spoiled.keys() | self.lost_intents
            and not self._is_of_blind_undo(change.key)
        ):
            self.swept.add(change.key)
            self._judge_sweep(change)
        content = parsed(change.after) if change.after is not None and change.key.endswith(".json") else {}
        is_failure = content.keys() == {"code", "message", "remedy"}
        is_lost = is_failure and content["code"] == "STAGED_LOST"
        if is_lost and not self.lost_uploads and not any(reason in content["message"] for reason in WITHDRAWN):
            self.find(f"uploads of a bound load were aborted by us: {content['message']}")

    def _is_of_blind_undo(self, key: str) -> bool:
        """Whether it is the report of an undo whose intent is lost: a person ends it, and the load is undone again."""
        folder = key.rpartition("/")[0]
        is_lost = any(own.startswith(f"{folder}/") for own in self.lost_intents)
        return is_lost and is_undo(folder.rpartition("/")[2]) and key.endswith(".report.json")

    def _judge_sweep(self, change: Change) -> None:
        """Records are cleared away when they are old by the store's own clock, unless a person does it before."""
        if change.before is None or self.is_swept_early or not change.key.endswith(".json"):
            return
        if (age := change.at - change.before.modified) < KEPT:
            self.find(f"a record of {age.days} days is deleted: {change.key}")

    def _data_changed(self, change: Change) -> None:
        if change.before is not None and change.after is not None and change.before.body != change.after.body:
            self.find(f"data object written over: {change.key}")
        if change.after is None and change.before is not None and change.key in self.strangers:
            # One that nothing names is an orphan, whoever wrote it.
            if change.at - change.before.modified < ORPHANED:
                self.find(f"stranger's object deleted: {change.key}")
            del self.strangers[change.key]
        if change.after is None and change.before is not None:
            self._judge_needed(change.key)
            self.merged.judge_deleted(self.places, change.key, change.before)
            self._data_deleted(change.key, change.before)
        load = change.after.metadata.get(LOAD, "") if change.after is not None else ""
        if load and change.after is not None and change.after.upload_id:
            pipeline, job, attempt = load.split("/")
            places = [place for place in self.places if place.pipeline == pipeline]
            if not any((job, attempt) in self.books[place.state].bound for place in places):
                self.find(f"visible before its intent was bound: {change.key} of {load}")

    def _data_deleted(self, key: str, before: Stored) -> None:
        """A committed load's object goes when all of what replaces it is there."""
        pipeline, job, attempt = before.metadata.get(LOAD, "//").split("/")
        for place in self.places:
            if place.pipeline != pipeline or (job, attempt) not in self.books[place.state].commits:
                continue
            if not self._is_committed(place, key):
                continue
            if place.catalog == "iceberg" and f"{QUARANTINE}/" not in key:
                # What its metadata name is judged for every object.
                self.merged.expired[key] = before
            else:
                self._committed_deleted(place, key, before)

    def _committed_deleted(self, place: Place, key: str, before: Stored) -> None:
        _, job, _ = before.metadata[LOAD].split("/")
        pending = pending_of(self.bucket.objects, place)
        if place.refreshes:
            self._refresh_deleted(place, key, job)
            return
        if job in self.books[place.state].undone or pending.get("job_id") == f"undo.{job}":
            return
        others = is_undo(pending.get("job_id", ""))
        if not pending or others or pending["phase"] != "uploaded" or self._missing(place, pending):
            self.find(f"{place.pipeline}/{place.table}: object of load {job} deleted too early: {key}")
        if f"{QUARANTINE}/" in key:
            self.quarantines.deleted(place, key, before)

    def _is_committed(self, place: Place, key: str) -> bool:
        """Whether a committed load's object is the table's, and no file with deletes of a try that lost the race."""
        if "/deletes-" in key and key not in list_delete_files(self.catalog, self.bucket, place.names):
            return False
        return key.startswith((f"{place.path}/", f"{place.path}{QUARANTINE}/"))

    def _refresh_deleted(self, place: Place, key: str, job: str) -> None:
        """Files of a full refresh go when neither readers see them nor an undo can show them."""
        name, state = f"{place.pipeline}/{place.table}", self.bucket.objects.get(place.state)
        kept = parsed(state).get("generations", ()) if state is not None else ()
        if any(own["job_id"] == job for own in kept):
            self.find(f"{name}: object of refresh {job} deleted, which an undo can show: {key}")
        if self.readers.shows(place, key):
            self.find(f"{name}: object of refresh {job} deleted, which readers see: {key}")

    def _judge_switches(self, places: Sequence[Place]) -> None:
        """Readers see the files of one full refresh, all of them, whatever moment it is."""
        visible = self.readers.list_visible()
        for place in places:
            name, pending = f"{place.pipeline}/{place.table}", pending_of(self.bucket.objects, place)
            jobs = {self.sources.readings[nonce].job for nonce, _ in visible[place.state]}
            if len(jobs) > 1:
                self.find(f"{name}: readers see files of refreshes {sorted(jobs)}")
            if pending.get("job_id") in jobs and (missing := self._missing(place, pending)):
                self.find(f"{name}: readers see refresh {pending['job_id']} without {missing}")

    def _missing(self, place: Place, pending: Mapping[str, Any]) -> list[str]:
        """Files of the intent that are not there, by the intent's own text; none where somebody has deleted it."""
        receipts = receipts_of(self.bucket.objects, place, pending)
        if receipts is None:
            own = f"/loads/{pending['job_id']}/{pending['attempt']}/tables/"
            return [] if any(own in key for key in self.lost_intents) else ["the intent"]
        return [own["key"] for own in receipts if own["key"] not in self.bucket.objects]

    def published(self, name: tuple[str, str]) -> None:
        """A change of the catalog: what it shows must be whole."""
        here = [place for place in self.places if place.names == name]
        # Of a table that two pipelines share nobody can tell here who has added a partition.
        if len(here) == 1 and here[0].catalog == "glue" and (pending := pending_of(self.bucket.objects, here[0])):
            self._judge_partition(here[0], pending)
        self._judge_switches([place for place in here if place.refreshes])
        for place in here:
            if place.catalog != "iceberg":
                continue
            for location, rows in self.readers.list_files(name).items():
                stored = self.bucket.objects.get(location)
                if stored is None:
                    self.find(f"Iceberg table {name} lists a file that is not there: {location}")
                elif len(rows_of(stored.body)) != rows:
                    self.find(f"Iceberg table {name} counts {rows} rows in {location}")

    def _judge_partition(self, place: Place, pending: Mapping[str, Any]) -> None:
        """A partition that is new is complete: no file of the pending load lies in it that is not there yet."""
        partitions = self.catalog.tables[place.names].partitions
        book = self.books[place.state]
        book.partitions &= partitions.keys()
        for value in sorted(partitions.keys() - book.partitions):
            book.partitions.add(value)
            location = partitions[value]["StorageDescriptor"]["Location"].split("/", 3)[3] + "/"
            if missing := [key for key in self._missing(place, pending) if key.startswith(location)]:
                self.find(f"{place.pipeline}/{place.table}: partition {value} is there and not {missing}")

    # -- afterwards

    def judge(self, *, is_answered: bool) -> None:
        """Everything that can be seen once all has come to its end; ``is_answered`` says that no call failed."""
        visible = self.readers.list_all()
        for place in self.places:
            self._judge_table(place, visible[place.state])
            self._judge_history(place)
        self.quarantines.judge_uploads(self.swept | self.ever_spoiled, is_answered=is_answered)
        for key, body in self.strangers.items():
            if self.bucket.objects.get(key, Stored(b"", "", datetime.min, {})).body != body:
                self.find(f"stranger's object is not as it was: {key}")
        # A full refresh has its own columns alone.
        refreshed = {place.names for place in self.places if place.refreshes}
        for name, column in sorted(own for own in self.foreign_columns if own[0] not in refreshed):
            if column not in {own["Name"] for own in self.catalog.tables[name].content["StorageDescriptor"]["Columns"]}:
                self.find(f"Glue table {name} lost the foreign column {column}")
        for name, mark in sorted(self.foreign_properties):
            if (
                self.readers.list_files(name)
                and mark not in (metadata_of(self.catalog, self.bucket, name) or {})["properties"]
            ):
                self.find(f"Iceberg table {name} lost the foreign property {mark}")

    def is_done(self, pipeline: str, job: str, tables: Collection[str]) -> bool:
        """Whether the job is committed in each of these tables."""
        places = [place for place in self.places if place.pipeline == pipeline and place.table in tables]
        return all(self._is_done_in(place, job) for place in places)

    def _is_done_in(self, place: Place, job: str) -> bool:
        """Under its own id, or under that of a load that it repeats and that is not undone here."""
        book = self.books[place.state]
        done = {own for own, _ in book.commits}
        return job in done or any(own in done - book.undone for own in chain_of(job))

    def allow_gap(self, pipeline: str, table: str) -> None:
        """A person leaves rows out of a table."""
        place = next(own for own in self.places if (own.pipeline, own.table) == (pipeline, table))
        self.books[place.state].resets += 1

    def is_forgotten(self, pipeline: str, job: str) -> bool:
        """Whether its control objects, or those of a load that it stands for, were cleared away after it was done: the
        id would be a new load's."""
        return any(self._is_forgotten_alone(pipeline, own) for own in chain_of(job))

    def _is_forgotten_alone(self, pipeline: str, job: str) -> bool:
        places = [place for place in self.places if place.pipeline == pipeline]
        done = any(job in {own for own, _ in self.books[place.state].commits} for place in places)
        # Other records may go while the load is pending still in a table.
        reports = [key for key in self.swept if key.endswith(".report.json")]
        return done and any(key.startswith(f"{place.root}/loads/{job}/") for place in places for key in reports)

    def is_untouched(self, pipeline: str, job: str) -> bool:
        """Whether all that the job wrote is to be there: nothing replaced it, nobody closed or forgot it."""
        for place in self.places:
            if place.pipeline == pipeline:
                book = self.books[place.state]
                jobs = [own for own, _ in book.commits]
                if job not in jobs or (place.overwrites and jobs[-1] != job) or job in book.given_up | book.undone:
                    return False
                # Nothing tells which rows of the quarantine a replay took that was closed without its intent.
                if any(is_replay(own) for own in book.given_up):
                    return False
        return not any(f"/loads/{job}/" in key for key in self.swept)

    def _judge_table(self, place: Place, seen: Counter[tuple[int, int]]) -> None:
        book, name = self.books[place.state], f"{place.pipeline}/{place.table}"
        state = self.bucket.objects.get(place.state)
        content = parsed(state) if state is not None else {"pending": None, "committed": 0, "running": {}}
        if content["pending"]:
            self.find(f"{name}: still pending: {content['pending']['job_id']} {content['pending']['phase']}")
        self._judge_reports(place, book)
        self.rows.judge(place, seen)

    def _judge_history(self, place: Place) -> None:
        """A table and its history have the same loads, but for those that people ended. A load whose undo was given up
        in one of them alone is repeated in the other."""
        books = [self.books[own.state] for own in self.places if own.source == place.source]
        ended = {chain_of(job)[0] for book in books for job in book.given_up}
        loads = [
            {chain_of(job)[0] for job, _ in book.commits if not is_undo(job) and job not in book.undone} - ended
            for book in books
        ]
        if place.history_of is not None and loads[0] != loads[-1]:
            self.find(f"{place.source} has loads {sorted(loads[0])}, and its history {sorted(loads[-1])}")

    def _judge_reports(self, place: Place, book: Book) -> None:
        """Reports are those of the loads that are done, and say what is there."""
        name, previous = f"{place.pipeline}/{place.table}", ""
        for job, attempt in book.commits:
            report = self._report(place, job)
            if report is None:
                if not any(f"/loads/{job}/" in key for key in self.swept):
                    self.find(f"{name}: load {job} is done and has no report")
                continue
            if attempt and report["attempt"] != attempt:
                self.find(f"{name}: report of {job} is attempt {report['attempt']}'s, committed was {attempt}")
            whole_bucket = self.merged.expired | self.bucket.objects
            objects = [whole_bucket[key] for key in keys_of(self.bucket.objects, report) if key in whole_bucket]
            is_kept = not place.overwrites or job == book.commits[-1][0] or ".s" in book.commits[-1][0]
            # A process that sleeps for longer than records are kept writes the report anew, which names receipts that
            # are cleared away.
            is_swept = any(f"/loads/{job}/" in key and "/receipts/" in key for key in self.swept)
            if is_kept and not is_swept and job not in book.given_up | book.undone:
                rows = sum(len(rows_of(stored.body)) for stored in objects)
                whole = (rows, len(objects), sum(len(stored.body) for stored in objects))
                if whole != (report["rows"], report["files"], report["bytes"]):
                    self.find(f"{name}: report of {job} tells of {report['rows']} rows, there are {rows}")
            if place.exclusive and report["started"] <= previous:
                self.find(f"{name}: load {job} began at {report['started']}, the one before it at {previous}")
            previous = report["started"]

    def _report(self, place: Place, job: str) -> dict[str, Any] | None:
        root = f"{place.root}/loads/{job}/"
        for key, stored in self.bucket.objects.items():
            if key.startswith(root) and "report" in key:
                report = parsed(stored)
                if f"/{place.table}.report" in key or key.endswith(f"/{place.table}.json"):
                    return report
        return None

    def attempt_ended(self, place: Place, job: str, attempt: str, status: str) -> None:
        """What an attempt says of a table, the moment it says it."""
        self.quarantines.ended.add((place.state, job, attempt))
        book, name, pending = (
            self.books[place.state],
            f"{place.pipeline}/{place.table}",
            pending_of(self.bucket.objects, place),
        )
        # A report is written while its intent is pending, once all is there.
        is_whole = pending.items() >= {"job_id": job, "phase": "uploaded"}.items()
        done = is_whole or self._is_done_in(place, job)
        if status in {"done", "already_done"} and not done:
            self.find(f"{name}: attempt at {job} says {status}, and it is not committed")
        if status != "failed" or (job, attempt) in book.commits or pending.get("attempt") == attempt:
            return
        left = [
            key
            for key, stored in self.bucket.objects.items()
            if stored.metadata.get(LOAD) == f"{place.pipeline}/{job}/{attempt}"
            and not is_control(key)
            and "/metadata/" not in key
            and key.startswith((f"{place.path}/", f"{place.path}{QUARANTINE}/"))
        ]
        # Iceberg's readers see what its snapshots name, and those of a quarantine a folder.
        if [key for key in left if place.catalog != "iceberg" or f"{QUARANTINE}/" in key]:
            self.find(f"{name}: attempt at {job} says failed and left {len(left)} objects visible")


def _is_fit(key: str) -> bool:
    """Whether every store and reader takes the key, and keeps it in its folder."""
    segments = key.split("/")
    is_folder = segments[0] == "data" or segments[0] == CONTROL
    return key.isprintable() and not {"", ".", ".."} & set(segments) and is_folder
