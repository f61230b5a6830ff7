"""What the readers of each table see: files in the bucket, partitions in Glue, the current snapshot of Iceberg."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tests.simulation.books import CONTROL, Place, rows_of
from tests.simulation.bucket import Bucket
from tests.simulation.glue import Catalog
from tests.simulation.iceberg import current_files
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
        listed = {name: set(self.list_files(name)) for name in self._iceberg_names()}
        for key, stored in self.bucket.objects.items():
            if CONTROL in key or "/metadata/" in key or key in self.strangers:
                continue
            for row_id, nonce in rows_of(stored.body):
                reading = self.sources.readings[nonce]
                place = by_table[reading.pipeline, reading.table]
                if place.catalog == "iceberg" and key not in listed[place.names]:
                    continue
                if place.catalog == "glue" and not self._is_registered(place, key):
                    continue
                seen[place.state][nonce, row_id] += 1
        return seen

    def list_files(self, name: tuple[str, str]) -> Mapping[str, int]:
        """Rows by key of what an Iceberg table's readers see."""
        try:
            return current_files(self.catalog, self.bucket, name)
        except KeyError as missing:
            self.find(f"Iceberg table {name} names a file that is not there: {missing}")
            return {}

    def _iceberg_names(self) -> set[tuple[str, str]]:
        return {place.names for place in self.places if place.catalog == "iceberg"}

    def _is_registered(self, place: Place, key: str) -> bool:
        table = self.catalog.tables.get(place.names)
        if table is None:
            return False
        locations = [table.content["StorageDescriptor"]["Location"]]
        if place.partitioned:
            locations = [own["StorageDescriptor"]["Location"] for own in table.partitions.values()]
        return any(key.startswith(location.split("/", 3)[3].rstrip("/") + "/") for location in locations)
