"""A store in memory whose every call may be lost, unclear, the caller's last, or the moment another attempt runs."""

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from lakewriter.commit.store import Completion, Entry, StoredObject, Unclear, Upload
from lakewriter.receipt import Receipt
from lakewriter.spec.catalogs import EVERYTHING


class Crash(BaseException):
    """The process is gone."""


class World:
    """What all processes share. ``between`` is called before and after each call."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}
        self.data: dict[str, StoredObject] = {}
        self.staged: dict[str, tuple[str, str]] = {}
        self.clock = datetime(2024, 1, 15, tzinfo=UTC)
        self.serial = 0

    def tick(self) -> datetime:
        self.clock += timedelta(seconds=1)
        self.serial += 1
        return self.clock

    def stage(self, key: str, load: str) -> str:
        self.tick()
        upload_id = f"upload{self.serial}"
        self.staged[upload_id] = (key, load)
        return upload_id


class Memory:
    """One process's view of the world; ``trouble`` decides what happens to each call."""

    def __init__(self, world: World, trouble: Callable[[], None], rng: random.Random, unclear: float) -> None:
        self.world, self._trouble, self._rng, self._unclear = world, trouble, rng, unclear
        self.abilities = EVERYTHING

    def _maybe_unclear(self) -> None:
        if self._rng.random() < self._unclear:
            raise Unclear("no answer")

    def get(self, key: str) -> tuple[bytes, str] | None:
        self._trouble()
        return self.world.objects.get(key)

    def create(self, key: str, body: bytes) -> str | None:
        self._trouble()
        return None if key in self.world.objects else self._put(key, body)

    def replace(self, key: str, body: bytes, etag: str) -> str | None:
        self._trouble()
        return self._put(key, body) if self.world.objects.get(key, (b"", ""))[1] == etag else None

    def _put(self, key: str, body: bytes) -> str:
        self._maybe_unclear()
        self.world.tick()
        self.world.objects[key] = (body, f"etag{self.world.serial}")
        self._maybe_unclear()
        return f"etag{self.world.serial}"

    def list_entries(self, prefix: str, limit: int | None = None) -> Iterator[Entry]:
        self._trouble()
        keys = sorted(key for key in self.world.objects if key.startswith(prefix))
        return iter([Entry(key, self.world.clock, self.world.objects[key][1]) for key in keys[:limit]])

    def list_folders(self, prefix: str) -> Iterator[str]:
        self._trouble()
        within = (key.removeprefix(prefix).partition("/") for key in self.world.objects if key.startswith(prefix))
        return iter(sorted({prefix + name + slash for name, slash, _ in within if slash}))

    def find(self, key: str, *, checksum: bool = False) -> StoredObject | None:
        self._trouble()
        return self.world.data.get(key)

    def head(self, key: str) -> StoredObject | None:
        return self.find(key)

    def complete(self, receipt: Receipt) -> Completion:
        self._trouble()
        self._maybe_unclear()
        if receipt.upload_id not in self.world.staged:
            return Completion.GONE
        if receipt.key in self.world.data:
            return Completion.REFUSED
        _, load = self.world.staged.pop(receipt.upload_id)
        self.world.tick()
        self.world.data[receipt.key] = StoredObject(receipt.size, load, f"etag{self.world.serial}")
        self._maybe_unclear()
        return Completion.DONE

    def abort(self, key: str, upload_id: str, bucket: str = "") -> None:
        self._trouble()
        self.world.staged.pop(upload_id, None)

    def delete(self, key: str, etag: str | None = None) -> None:
        self._trouble()
        found = self.world.data.get(key)
        if found is not None and etag in (None, found.etag):
            del self.world.data[key]
        self.world.objects.pop(key, None)

    def delete_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.delete(key)

    def list_uploads(self, prefix: str) -> Iterator[Upload]:
        self._trouble()
        found = [Upload(key, upload_id) for upload_id, (key, _) in self.world.staged.items()]
        return iter([upload for upload in found if upload.key.startswith(prefix)])
