"""List, pin and read the files of a source: local ones and S3's, without Spark and its packages."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from lakewriter.aws import BotoCoreError, ClientError, find_bucket_region, get_shared_clients, read_default_keys
from lakewriter.aws.credentials import find_endpoint
from lakewriter.aws.source_objects import SourceObject, find_object, list_objects, stream_object
from lakewriter.source.task_sizes import SourceFile
from lakewriter.spec.access import Access

BLOCK: Final = 4 * 1024 * 1024
_THREADS: Final = 16
_S3_SCHEMES: Final = ("s3://", "s3a://")
PATTERN: Final = frozenset("*?[]{}")
"""Characters of a pattern."""
COPYING: Final = "._COPYING_"
"""The end of a file's name while Hadoop copies it."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class NotListable(Exception):  # noqa: N818
    """Paths that only Spark understands; the text gives the reason."""


class FileChangedError(OSError):
    """A file that has changed since it was listed."""


@dataclass(frozen=True)
class Entry:
    """A file or a folder; ``version`` is that of ``StoredFile``, blank for folders."""

    name: str
    path: str
    size: int = 0
    version: str = ""
    modified: int = 0
    """The time of its last change, in nanoseconds."""

    @property
    def is_folder(self) -> bool:
        """True for a folder."""
        return not self.version


@dataclass(frozen=True)
class Disk:
    """The local disks."""

    precision: ClassVar[int] = 1_000_000
    """The unit of the times that Spark lists, in nanoseconds."""
    is_local: ClassVar[bool] = True

    def open(self) -> fs.FileSystem:
        """Return the file system."""
        return fs.LocalFileSystem()

    def list_folder(self, path: str) -> list[Entry] | None:
        """Return the entries directly in a folder, by name; None if there is no folder."""
        folder = Path(path)
        if not folder.is_dir():
            return None
        entries = (Entry(item.name, str(item)) if item.is_dir() else self.find(str(item)) for item in folder.iterdir())
        return sorted(filter(None, entries), key=lambda entry: entry.name)

    def list_path(self, path: str) -> list[Entry] | None:
        """Return what ``list_folder`` does, or a file alone; None if there is nothing."""
        entries = self.list_folder(path)
        file = self.find(path) if entries is None else None
        return entries if file is None else [file]

    def find(self, path: str) -> Entry | None:
        """Return a file; None if there is none, as at the end of a link to nothing or to itself."""
        file = Path(path)
        with suppress(FileNotFoundError):
            if file.exists():
                size, version = pin_local(file)
                return Entry(file.name, path, size, version, int(version))
        return None

    def stream(self, path: str, version: str, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes ``start`` to ``end`` in blocks. Raise ``FileChangedError`` if there are fewer."""
        del version
        with Path(path).open("rb", buffering=0) as source:
            source.seek(start)
            while start < end and (block := source.read(min(BLOCK, end - start))):
                start += len(block)
                yield block
        if start < end:
            raise FileChangedError(f"{path} has changed since the load listed it")


@dataclass(frozen=True)
class Bucket:
    """S3 in ``region``, at ``endpoint`` if there is one; paths are ``bucket/key``. It holds no key."""

    region: str
    endpoint: str | None = None
    precision: ClassVar[int] = 1_000_000_000
    """See ``Disk``."""
    is_local: ClassVar[bool] = False

    def open(self) -> fs.FileSystem:
        """Return the file system, with the default chain's credentials of the calling process."""
        keys: dict[str, Any] = {**read_default_keys()} or {"anonymous": True}
        return _open_s3(self.region, self.endpoint, keys)

    def list_folder(self, path: str) -> list[Entry] | None:
        """Return the entries directly in a folder, by name; None if there is no folder."""
        bucket, _, key = path.partition("/")
        objects, folders = list_objects(bucket, f"{key}/" if key else "")
        if not objects and not folders:
            return None
        names = [folder.rstrip("/").rpartition("/")[2] for folder in folders]
        below = [Entry(name, f"{path}/{name}") for name in names if name]
        files = [_make_entry(bucket, item) for item in objects]
        # An object whose key ends with a slash represents its folder.
        return sorted([*below, *(file for file in files if file.name)], key=lambda entry: entry.name)

    def list_path(self, path: str) -> list[Entry] | None:
        """Return what ``list_folder`` does, or an object alone; None if there is nothing.

        Objects are listed by prefix only: a 403 for one key does not show whether it exists.
        """
        bucket, _, key = path.partition("/")
        entries = self.list_folder(path)
        if entries is not None or not key:
            return entries
        return [_make_entry(bucket, item) for item in list_objects(bucket, key)[0] if item.key == key] or None

    def find(self, path: str) -> Entry | None:
        """Return an object; None if there is none."""
        bucket, _, key = path.partition("/")
        item = find_object(bucket, key)
        return None if item is None else _make_entry(bucket, item)

    def stream(self, path: str, version: str, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes ``start`` to ``end`` in blocks. Raise ``ObjectChangedError`` if the object has changed."""
        return stream_object(self.region, self.endpoint, path, version, start, end)


@dataclass(frozen=True)
class BucketStore:
    """The destination's bucket, read with the destination's credentials."""

    access: Access

    def open(self) -> fs.FileSystem:
        """Return the file system, with credentials of the calling process."""
        keys: dict[str, Any] = dict(get_shared_clients(self.access).read_keys())
        return _open_s3(self.access.region, self.access.endpoint or find_endpoint(), keys)


Store = Disk | Bucket
AnyStore = Store | BucketStore


def pin_local(path: Path) -> tuple[int, str]:
    """Return a local file's size, and a version that differs after a change."""
    stat = path.stat()
    return stat.st_size, str(stat.st_mtime_ns)


def _open_s3(region: str | None, endpoint: str | None, options: dict[str, Any]) -> fs.FileSystem:
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    return fs.S3FileSystem(region=region, **options)


def _make_entry(bucket: str, item: SourceObject) -> Entry:
    # S3 gives whole seconds.
    modified = round(item.modified.timestamp() * 1000) * 1_000_000
    return Entry(item.key.rpartition("/")[2], f"{bucket}/{item.key}", item.size, item.etag, modified)


def list_files(paths: tuple[str, ...]) -> tuple[Store, list[SourceFile]]:
    """Return the data files that lie directly in the paths, those of a folder by name.

    Raise ``NotListable`` for a pattern, a folder in another, a path that is named twice, or one in another file system.
    """
    if not paths or len(set(paths)) < len(paths):
        raise NotListable("no path, or one path twice")
    if any(set(path) & {*PATTERN, "\\"} for path in paths):
        raise NotListable("a path is a pattern")
    remote = [is_remote(path) for path in paths]
    if any(remote) and not all(remote):
        raise NotListable("a path is neither local nor on S3")
    stores = [find_store(path) for path in paths]
    return stores[0][0], [file for store, path in stores for file in _list_data_files(store, path.rstrip("/") or path)]


def _list_data_files(store: Store, path: str) -> Iterator[SourceFile]:
    """Yield the files that Spark reads."""
    entries = store.list_path(path)
    if entries is None and store.is_local:
        raise NotListable(f"{path!r} does not exist")
    for entry in entries or ():
        if entry.is_folder and not (is_hidden(entry.name) or entry.name.endswith(COPYING)):
            raise NotListable(f"{entry.path!r} is a directory inside the path")
        if not entry.is_folder and is_data_file(entry.name):
            yield SourceFile(entry.path, entry.size)


def find_store(uri: str) -> tuple[Store, str]:
    """Return the store of one file or folder, and its path there. Raise ``NotListable`` if only Spark can open it."""
    if is_remote(uri):
        bare = uri.partition("://")[2]
        return _open_s3_store(bare.partition("/")[0]), bare
    bare = uri.removeprefix("file://").removeprefix("file:")
    if "://" in bare:
        raise NotListable(f"{uri!r} is neither local nor on S3")
    return Disk(), str(Path(bare).absolute())


def map_in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return the results of work on each file, in several threads: a file on S3 takes a few requests to begin."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, items))


def is_remote(uri: str) -> bool:
    """Return True for a path in S3."""
    return uri.startswith(_S3_SCHEMES)


def to_path(uri: str) -> str:
    """Return Spark's URI of a file as a local path, or without the escapes that Hadoop adds."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return unquote(parts.path)
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"


def is_data_file(name: str) -> bool:
    """Return True for a name of a file that Spark reads; see: PartitioningAwareFileIndex.isDataPath."""
    return not name.startswith((".", "_")) and not name.endswith(COPYING)


def is_hidden(name: str) -> bool:
    """Return True for a name that Spark skips; see: PartitioningAwareFileIndex.isDataPath."""
    return name.startswith((".", "_")) and "=" not in name


def detect_table_format(path: str) -> str | None:
    """Return the table format (delta, iceberg or hudi) if ``path`` is a table's folder or its data folder, else
    None.
    """
    if set(path) & {*PATTERN, "\\"}:
        return None
    # If listing is not allowed, reading raises the error.
    with suppress(NotListable, BotoCoreError, ClientError, OSError):
        store, root = find_store(path.rstrip("/"))
        for folder in (root, root.removesuffix("/data")):
            if store.list_folder(f"{folder}/_delta_log"):
                return "delta"
            if store.list_folder(f"{folder}/.hoodie"):
                return "hudi"
            if any(entry.name.endswith(".metadata.json") for entry in store.list_folder(f"{folder}/metadata") or ()):
                return "iceberg"
    return None


@lru_cache(maxsize=32)
def _open_s3_store(bucket: str) -> Bucket:
    return Bucket(find_bucket_region(bucket), find_endpoint())
