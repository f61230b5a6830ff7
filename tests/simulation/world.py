"""What befalls the bucket and the catalog without any of our processes: lost uploads, foreign writers, time."""

import gzip
import json
import random
from collections import Counter
from typing import Any, Final

from lakewriter.errors import CODES
from tests.simulation.audit import Auditor
from tests.simulation.bucket import Bucket
from tests.simulation.foreign_engine import ForeignEngine
from tests.simulation.glue import Catalog
from tests.simulation.iceberg import key_of, metadata_of
from tests.simulation.weather import Network

ACTS: Final = ("vanish", "stranger", "foreign-column", "foreign-commit", "month", "part")
TRANSIENT: Final = frozenset(code for code, kind in CODES.items() if kind.transient)
EXCUSES: Final = {
    "denied": {"S3_ACCESS_DENIED", "GLUE_ACCESS_DENIED", "PENDING_UNRECOVERABLE"},
    "stranger": {"KEY_EXISTS"},
    "part": {"PENDING_UNRECOVERABLE"},
    "month": {"LOAD_GONE"},
    "cut": {"SOURCE_FAILED"},
    "died": {"SOURCE_FAILED"},
    "anew": {"SOURCE_FAILED"},
    "undo": {"LOAD_UNDONE"},
    "lost-state": {"STATE_LOST"},
    "lost-intent": {"PENDING_UNRECOVERABLE"},
}
"""Failures that no retry mends, by what brings them rightly about."""


class World:
    """Acts of which a history has some; ``quiet`` ends them."""

    def __init__(
        self,
        rng: random.Random,
        network: Network,
        bucket: Bucket,
        catalog: Catalog,
        auditor: Auditor,
        without: frozenset[str],
        certain: frozenset[str] = frozenset(),
    ) -> None:
        self.rng, self.network, self.bucket, self.catalog, self.auditor = rng, network, bucket, catalog, auditor
        self.met: Counter[str] = Counter()
        self.engine: ForeignEngine | None = None
        self.without = without
        self._acts = [act for act in ACTS if (rng.random() < 0.2 or act in certain) and act not in without]
        self._chance = rng.choice([0.01, 0.05, 0.2]) if not certain else rng.choice([0.02, 0.05])
        self._is_quiet = False

    @property
    def has_months(self) -> bool:
        """Whether so much time may pass that records are swept away."""
        return "month" in self._acts

    def act(self) -> None:
        """Called at every switch between threads."""
        if self._is_quiet:
            return
        if self.engine is not None and (changed := self.engine.act()):
            self.met[changed.split()[0]] += 1
            self.network.note(f"world: {changed}")
        if self.network.late and self.rng.random() < 0.05:
            self.network.arrive()
        if self._acts and self.rng.random() < self._chance:
            act = self.rng.choice(self._acts)
            done = {
                "vanish": self._vanish,
                "stranger": self._put_strangers_object,
                "foreign-column": self._add_column,
                "foreign-commit": self._commit,
                "month": self._let_a_month_pass,
                "part": self._spoil_part,
            }[act]()
            if done:
                self.met[act] += 1
                self.network.note(f"world: {act} {done}")

    def quiet(self) -> None:
        """No more of it; what was late arrives or is lost, and people put right what others have done."""
        while self.network.late:
            if self.rng.random() < 0.5:
                self.network.late.pop()
            else:
                self.network.arrive()
        self._is_quiet = True
        for key, body in list(self.auditor.strangers.items()):
            there = self.bucket.objects.get(key)
            if there is None or there.body != body:
                self.auditor.find(f"stranger's object is not as it was: {key}")
            del self.auditor.strangers[key]
            self.auditor.are_strangers_gone = True
            self.bucket.delete(key)

        for key, was in list(self.auditor.spoiled.items()):
            self.bucket.put(key, was.body, was.metadata)
            del self.auditor.spoiled[key]

    def excuses(self, met: Counter[str]) -> frozenset[str]:
        """Codes with which a load may fail: those that a retry may mend, and those that something has earned."""
        earned = {code for cause, codes in EXCUSES.items() if (met + self.met)[cause] for code in codes}
        return frozenset(TRANSIENT | earned)

    def _vanish(self) -> str:
        """A lifecycle rule that does not wait."""
        if not self.bucket.uploads:
            return ""
        name = self.rng.choice(sorted(self.bucket.uploads))
        self.auditor.lost_uploads = True
        return f"{name} {self.bucket.uploads.pop(name).key}"

    def _put_strangers_object(self) -> str:
        """At a key that a staged file is to have."""
        # Where a full refresh replaces all that its template gives, a stranger's object goes too: that is documented.
        refreshed = tuple(f"{place.path}/" for place in self.auditor.places if place.overwrites and not place.refreshes)
        staged = {own.key for own in self.bucket.uploads.values() if not own.key.startswith(refreshed)}
        keys = sorted(staged - set(self.bucket.objects))
        if not keys:
            return ""
        key = self.rng.choice(keys)
        self.auditor.strangers[key] = b"a stranger's"
        self.bucket.put(key, b"a stranger's", {})
        return key

    def _spoil_part(self) -> str:
        """Somebody deletes a part of a load's receipts, or writes over it."""
        keys = sorted(key for key in self.bucket.objects if "/receipts/" in key and key not in self.auditor.spoiled)
        if not keys:
            return ""
        key = self.rng.choice(keys)
        self.auditor.spoiled[key] = self.bucket.objects[key]
        self.auditor.ever_spoiled.add(key)
        if self.rng.random() < 0.5:
            self.bucket.delete(key)
            return f"{key} is deleted"
        body = self.bucket.objects[key].body
        fewer = gzip.compress(gzip.decompress(body).partition(b"\n")[0])
        self.bucket.put(key, self.rng.choice([b"", b"{}", body[:-1], fewer]), {})
        return f"{key} is changed"

    def _add_column(self) -> str:
        """Somebody else's change of a Glue table."""
        names = [
            name for name, own in self.catalog.tables.items() if "metadata_location" not in own.content["Parameters"]
        ]
        if not names:
            return ""
        name = self.rng.choice(sorted(names))
        content = self.catalog.tables[name].content
        column = {"Name": f"foreign_{self.catalog.tables[name].version}", "Type": "string"}
        storage = content["StorageDescriptor"]
        self.auditor.foreign_columns.add((name, column["Name"]))
        self.catalog.update(name, content | {"StorageDescriptor": storage | {"Columns": [*storage["Columns"], column]}})
        return f"{name} {column['Name']}"

    def _commit(self) -> str:
        """Another engine's commit to an Iceberg table: a property."""
        names = [name for name, own in self.catalog.tables.items() if "metadata_location" in own.content["Parameters"]]
        if not names:
            return ""
        name = self.rng.choice(sorted(names))
        content = self.catalog.tables[name].content
        if key_of(content["Parameters"]["metadata_location"]) not in self.bucket.objects:
            return ""
        metadata: dict[str, Any] = metadata_of(self.catalog, self.bucket, name) or {}
        mark = f"foreign-{self.catalog.tables[name].version}"
        location = content["Parameters"]["metadata_location"]
        log = [*metadata["metadata-log"], {"timestamp-ms": metadata["last-updated-ms"], "metadata-file": location}]
        changed = metadata | {"properties": metadata["properties"] | {mark: "yes"}, "metadata-log": log}
        made = f"{location.rpartition('/')[0]}/{len(log):05d}-{mark}.metadata.json"
        self.bucket.put(key_of(made), json.dumps(changed).encode(), {})
        self.auditor.foreign_properties.add((name, mark))
        parameters = content["Parameters"] | {"metadata_location": made, "previous_metadata_location": location}
        self.catalog.update(name, content | {"Parameters": parameters})
        return f"{name} {mark}"

    def _let_a_month_pass(self) -> str:
        days = self.rng.choice([1, 2, 31, 40])
        self.network.scheduler.now_us += days * 86_400_000_000
        return f"{days} days"
