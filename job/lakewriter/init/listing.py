"""List local folders and prefixes of S3, without what Spark passes over."""

import os
from pathlib import Path
from typing import Final

from lakewriter import aws
from lakewriter.errors import SourceFailedError
from lakewriter.source.storage import is_hidden
from lakewriter.source.task_sizes import SourceFile

S3: Final = ("s3://", "s3a://")


def is_remote(path: str) -> bool:
    """Return True for a path in S3."""
    return path.startswith(S3)


def list_folder(path: str) -> tuple[list[SourceFile], list[str]]:
    """List the files and folders directly in ``path``, each in the order of names; a file is its own only content."""
    if is_remote(path):
        return _list_prefix(path)
    folder = Path(path)
    if folder.is_file():
        return [SourceFile(path, folder.stat().st_size)], []
    if not folder.is_dir():
        raise SourceFailedError(f"there is no file or folder {path!r}.", remedy="Give a path that exists.")
    with os.scandir(folder) as entries:
        shown = sorted((entry for entry in entries if not _is_hidden(entry.name)), key=lambda entry: entry.name)
    files = [SourceFile(os.path.join(path, e.name), e.stat().st_size) for e in shown if e.is_file()]  # noqa: PTH118
    return files, [os.path.join(path, e.name) for e in shown if e.is_dir()]  # noqa: PTH118 - keeps the path as given


def _list_prefix(path: str) -> tuple[list[SourceFile], list[str]]:
    scheme, _, rest = path.partition("://")
    bucket, _, key = rest.strip("/").partition("/")
    try:
        keys, folders = aws.list_objects(bucket, f"{key}/" if key else "")
        if not keys and not folders and key:
            keys = [entry for entry in aws.list_objects(bucket, key)[0] if entry.key == key]
    except (aws.ClientError, aws.BotoCoreError) as error:
        raise SourceFailedError(
            f"{path} cannot be listed: {error}.", remedy="Check the bucket's name and this machine's AWS credentials."
        ) from error
    files = [SourceFile(f"{scheme}://{bucket}/{name}", size) for name, size, _ in keys if not _is_hidden(name)]
    if not files and not folders:
        raise SourceFailedError(f"nothing lies under {path}.", remedy="Give a prefix that has objects.")
    return files, [f"{scheme}://{bucket}/{name.rstrip('/')}" for name in folders if not _is_hidden(name.rstrip("/"))]


def _is_hidden(name: str) -> bool:
    base = name.rpartition("/")[2]
    return not base or is_hidden(base)
