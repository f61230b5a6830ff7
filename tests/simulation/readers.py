"""What the readers of each table see: files in the bucket, or those that an object names, partitions in Glue, the
current snapshot of Iceberg."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tests.simulation.books import FLOOR, QUARANTINE, Place, is_control, kept_rows_of, parsed, rows_of
from tests.simulation.bucket import Bucket
from tests.simulation.glue import Catalog
from tests.simulation.iceberg import current_deletes, current_files
from tests.simulation.source import Sources


@dataclass
class Readers:
    """Of all tables; ``strangers`` are keys that nobody reads, ``find`` takes what cannot be read."""

    bucket: Bucket
    catalog: Catalog
    sources: Sources
    places: list[Place]
    strangers: Collection[str]
    find: Callable[[str], None]

    def list_visible(self) -> dict[str, Counter[tuple[int, int]]]:
        """By table how often each row of each reading is seen by its readers."""
        seen: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
        by_table = {(place.pipeline, place.table): place for place in self.places}
        names = {place.names for place in self.places if place.catalog == "iceberg"}
        listed = {name: set(self.list_files(name)) for name in names}
        deleted = {name: current_deletes(self.catalog, self.bucket, name) for name in names}
        for key, stored in self.bucket.objects.items():
            if is_control(key) or "/metadata/" in key or key in self.strangers or key.endswith("/_latest/files.json"):
                continue
            if f"{QUARANTINE}/" in key or "/deletes-" in key:
                continue
            for position, (row_id, nonce) in enumerate(rows_of(stored.body)):
                if nonce == FLOOR:
                    place = next(own for own in self.places if key.startswith(f"{own.path}/"))
                else:
                    reading = self.sources.readings[nonce]
                    place = by_table[reading.pipeline, reading.table]
                if place.catalog == "iceberg":
                    is_seen = key in listed[place.names] and position not in deleted[place.names].get(key, ())
                else:
                    is_seen = self._is_file_read(place, key)
                if is_seen:
                    seen[place.state][nonce, row_id] += 1
        return seen

    def list_all(self) -> dict[str, Counter[tuple[int, int]]]:
        """The same with the rows that readers see in the tables' quarantines."""
        seen = self.list_visible()
        by_table = {(place.pipeline, place.table): place for place in self.places}
        for key, stored in self.bucket.objects.items():
            if is_control(key) or f"{QUARANTINE}/" not in key or key in self.strangers:
                continue
            for row_id, nonce, _ in kept_rows_of(stored.body):
                reading = self.sources.readings[nonce]
                place = by_table[reading.pipeline, reading.table]
                if key.startswith(f"{place.quarantine}/") and self._shows_quarantine(place, key):
                    seen[place.state][nonce, row_id] += 1
        return seen

    def _shows_quarantine(self, place: Place, key: str) -> bool:
        if not place.in_glue:
            return True
        # A name that is too long for Glue is a shorter one there.
        tables = (own.content for (database, _), own in self.catalog.tables.items() if database == place.names[0])
        places = (own["StorageDescriptor"]["Location"].split("/", 3)[3].rstrip("/") + "/" for own in tables)
        return any(own == f"{place.quarantine}/" and key.startswith(own) for own in places)

    def list_latest(self, place: Place) -> list[str]:
        """The keys that the table's object names as the files to read; none where there is no such object."""
        stored = self.bucket.objects.get(place.latest)
        if stored is None:
            return []
        return [uri.split("/", 3)[3] for uri in parsed(stored)["files"]]

    def list_files(self, name: tuple[str, str]) -> Mapping[str, int]:
        """Rows by key of what an Iceberg table's readers see."""
        try:
            return current_files(self.catalog, self.bucket, name)
        except KeyError as missing:
            self.find(f"Iceberg table {name} names a file that is not there: {missing}")
            return {}

    def _is_file_read(self, place: Place, key: str) -> bool:
        """Whether readers of a table of plain files read this one."""
        if place.catalog == "glue":
            return self._is_registered(place, key)
        return not place.refreshes or key in self.list_latest(place)

    def shows(self, place: Place, key: str) -> bool:
        """Whether readers of a refreshed table read this file."""
        if place.catalog == "iceberg":
            return key in self.list_files(place.names)
        return self._is_registered(place, key) if place.catalog == "glue" else key in self.list_latest(place)

    def _is_registered(self, place: Place, key: str) -> bool:
        table = self.catalog.tables.get(place.names)
        if table is None:
            return False
        locations = [table.content["StorageDescriptor"]["Location"]]
        if place.partitioned:
            locations = [own["StorageDescriptor"]["Location"] for own in table.partitions.values()]
        return any(key.startswith(location.split("/", 3)[3].rstrip("/") + "/") for location in locations)
