"""Open the files of a source with pyarrow: local ones and S3's, without Spark and its packages."""

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from lakewriter.aws import (
    BotoCoreError,
    ClientError,
    find_bucket_region,
    get_shared_clients,
    list_objects,
    read_default_keys,
)
from lakewriter.source.task_sizes import SourceFile
from lakewriter.spec.access import Access

_S3_SCHEMES: Final = ("s3://", "s3a://")


class NotListable(Exception):  # noqa: N818
    """Paths that only Spark understands; the text gives the reason."""


@dataclass(frozen=True)
class Store:
    """The store of files: local disks, or S3 in ``region``, at ``endpoint`` if there is one. It holds no key."""

    region: str | None = None
    endpoint: str | None = None

    def open(self) -> fs.FileSystem:
        """Return the file system, with the default chain's credentials of the calling process."""
        if self.region is None:
            return fs.LocalFileSystem()
        options: dict[str, Any] = {**read_default_keys()} or {"anonymous": True}
        if self.endpoint:
            scheme, _, host = self.endpoint.rpartition("://")
            options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
        return fs.S3FileSystem(region=self.region, **options)


@dataclass(frozen=True)
class BucketStore:
    """The destination's bucket, read with the destination's credentials."""

    access: Access

    def open(self) -> fs.FileSystem:
        """Return the file system, with credentials of the calling process."""
        options: dict[str, Any] = dict(get_shared_clients(self.access).read_keys())
        endpoint = self.access.endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if endpoint:
            scheme, _, host = endpoint.rpartition("://")
            options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
        return fs.S3FileSystem(region=self.access.region, **options)


AnyStore = Store | BucketStore


def list_files(paths: tuple[str, ...], *, by_name: bool = False) -> tuple[Store, list[SourceFile]]:
    """Return the data files under the paths in the order of Spark's listing.

    Raise ``NotListable`` if Spark understands more in the paths. With ``by_name`` each folder's files are sorted by
    name.
    """
    if not paths or len(set(paths)) < len(paths):
        raise NotListable("no path, or one path twice")
    if any(set(path) & set("*?[]{}\\") for path in paths):
        raise NotListable("a path is a pattern")
    remote = [path.startswith(_S3_SCHEMES) for path in paths]
    if all(remote):
        bare = [path.partition("://")[2].strip("/") for path in paths]
        store = _open_s3_store(bare[0].partition("/")[0])
        return store, [file for path in bare for file in _sort_files(_list_s3(path), by_name)]
    if any(remote) or any("://" in path.removeprefix("file://") for path in paths):
        raise NotListable("a path is neither local nor on S3")
    return Store(), [file for path in paths for file in _sort_files(_list_local(_to_local_path(path)), by_name)]


def find_store(uri: str) -> tuple[Store, str]:
    """Return the store of one file or folder, and its path there. Raise ``NotListable`` if only Spark can open it."""
    if is_remote(uri):
        bare = uri.partition("://")[2]
        return _open_s3_store(bare.partition("/")[0]), bare
    bare = uri.removeprefix("file://").removeprefix("file:")
    if "://" in bare:
        raise NotListable(f"{uri!r} is neither local nor on S3")
    return Store(), str(Path(bare).absolute())


def is_remote(uri: str) -> bool:
    """Return True for a path in S3."""
    return uri.startswith(_S3_SCHEMES)


def to_path(uri: str) -> str:
    """Return Spark's URI of a file as a local path, or without the escapes that Hadoop adds."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return unquote(parts.path)
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"


def detect_table_format(path: str) -> str | None:
    """Return the table format (delta, iceberg or hudi) if ``path`` is a table's folder or its data folder, else
    None.
    """
    if set(path) & set("*?[]{}\\") or ("://" in path and not path.startswith((*_S3_SCHEMES, "file://"))):
        return None
    names = _list_s3_names if path.startswith(_S3_SCHEMES) else _list_folder_names
    root = path.rstrip("/")
    # If listing is not allowed, reading raises the error.
    with suppress(BotoCoreError, ClientError, OSError):
        for folder in (root, root.removesuffix("/data")):
            if names(f"{folder}/_delta_log"):
                return "delta"
            if names(f"{folder}/.hoodie"):
                return "hudi"
            if any(name.endswith(".metadata.json") for name in names(f"{folder}/metadata")):
                return "iceberg"
    return None


def _list_folder_names(path: str) -> list[str]:
    folder = _to_local_path(path)
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []


def _list_s3_names(path: str) -> list[str]:
    bucket, _, key = path.partition("://")[2].partition("/")
    return [entry.key.rpartition("/")[2] for entry in list_objects(bucket, f"{key}/")[0]]


def _sort_files(files: list[SourceFile], by_name: bool) -> list[SourceFile]:
    return sorted(files, key=lambda file: file.path) if by_name else files


def _to_local_path(path: str) -> Path:
    bare = path.removeprefix("file://").removeprefix("file:")
    return Path(bare).absolute()


@lru_cache(maxsize=32)
def _open_s3_store(bucket: str) -> Store:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return Store(find_bucket_region(bucket), endpoint)


def _list_local(path: Path) -> list[SourceFile]:
    if not path.exists():
        raise NotListable(f"{str(path)!r} does not exist")
    if path.is_file():
        return _select_data_files([(path.name, str(path), path.stat().st_size, False)])
    with os.scandir(path) as entries:
        # As the directory gives them, unsorted: so does Hadoop's local file system.
        return _select_data_files([(entry.name, entry.path, entry.stat().st_size, entry.is_dir()) for entry in entries])


def _list_s3(path: str) -> list[SourceFile]:
    """List by prefix only: a 403 for one key does not show whether it exists."""
    bucket, _, key = path.partition("/")
    keys, folders = list_objects(bucket, f"{key}/" if key else "")
    if not keys and not folders:
        keys = [entry for entry in list_objects(bucket, key)[0] if entry.key == key]
    entries = [(name.rpartition("/")[2], f"{bucket}/{name}", size, False) for name, size, _ in keys]
    return _select_data_files(
        [(folder.split("/")[-2], f"{bucket}/{folder}", 0, True) for folder in folders]
        + [entry for entry in entries if entry[0]]
    )


def is_hidden(name: str) -> bool:
    """Return True for a name that Spark skips; see: PartitioningAwareFileIndex.isDataPath."""
    return name.startswith((".", "_")) and "=" not in name


def _select_data_files(entries: list[tuple[str, str, int, bool]]) -> list[SourceFile]:
    """Select the files that Spark reads of ``(name, path, size, is a directory)``; see:
    PartitioningAwareFileIndex.isDataPath.
    """
    files = []
    for name, path, size, is_directory in entries:
        if is_hidden(name) or name.endswith("._COPYING_"):
            continue
        if is_directory:
            raise NotListable(f"{path!r} is a directory inside the path")
        if name.startswith((".", "_")):
            continue
        files.append(SourceFile(path, size))
    return files
