"""Copy the files that belong to records beside the records' own: staged as these are, and committed with them."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.aws import Clients
from lakewriter.documents.types import DATA, FILE, ROW
from lakewriter.errors import SourceFailedError
from lakewriter.receipt import COPIED, FileFacts, Receipt
from lakewriter.spec.access import Access
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import Limits
from lakewriter.staging.upload import MAX_PARTS, StagedUpload

_AT_ONCE: Final = 8
_BLOCK: Final = 1024 * 1024


@dataclass(frozen=True)
class CopyPlan:
    """The plan by which the files of a stream's records are copied; picklable.

    ``file_path`` is the property that says where a file went. With ``deletes`` the source's file is deleted once it is
    staged: its records do not come again, and the disk that the source fills is bounded.
    """

    file_path: str
    deletes: bool = False


class _Reference(msgspec.Struct):
    staging_file_url: str | None = None
    source_file_relative_path: str | None = None
    file_size_bytes: int | None = None


@dataclass(frozen=True)
class _Copy:
    """One file to copy: where it is, its key, its size as the source reported it, and the row that it belongs to."""

    path: Path
    key: str
    size: int | None
    row: int


class FileCopier:
    """Copies the files of one partition's records. A path that comes again replaces the file that it had before."""

    def __init__(
        self, plan: CopyPlan | None, names: ObjectNames, access: Access, limits: Limits, clients: Clients,
        metadata: dict[str, str], partition: int,
    ) -> None:  # fmt: skip
        self._plan, self._names, self._access, self._limits = plan, names, access, limits
        self._clients, self._metadata, self._partition = clients, metadata, partition
        self._staged: dict[str, tuple[StagedUpload, Receipt]] = {}
        self._begun: list[StagedUpload] = []
        self._lock = threading.Lock()

    def copy(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Copy the files of the batch's documents; return it with the keys of these in their place.

        ``SOURCE_FAILED`` for a file that cannot be copied.
        """
        if DATA not in batch.schema.names:
            return batch
        column_index = batch.schema.get_field_index(DATA)
        has_mark = pc.fill_null(pc.match_substring(batch.column(column_index), f'"{FILE}":'), False)
        if not has_mark.true_count:
            return batch
        texts, rows = batch.column(column_index).to_pylist(), batch.column(ROW).to_pylist()
        copies: dict[str, _Copy] = {}
        for number in pc.indices_nonzero(has_mark).to_pylist():
            document = msgspec.json.decode(texts[number], type=dict[str, msgspec.Raw])
            if (reference := document.pop(FILE, None)) is None:
                continue
            copied, file_path = self._plan_copy(reference, rows[number])
            document[file_path] = msgspec.Raw(msgspec.json.encode(copied.key))
            texts[number] = msgspec.json.encode(document).decode()
            copies[copied.key] = copied
        self._copy_all(list(copies.values()))
        return batch.set_column(
            column_index, batch.schema.field(column_index), pa.array(texts, batch.schema.field(column_index).type)
        )

    def finish(self) -> Iterator[Receipt]:
        """Yield the receipts of the files."""
        yield from (receipt for _, receipt in self._staged.values())

    def abandon(self, cause: BaseException) -> None:
        """Abort every upload that was begun."""
        for upload in self._begun:
            upload.abandon(cause)

    def _plan_copy(self, text: msgspec.Raw, row: int) -> tuple[_Copy, str]:
        reference = msgspec.json.decode(text, type=_Reference)
        url, path = reference.staging_file_url, reference.source_file_relative_path
        if self._plan is None:
            raise SourceFailedError(
                f"record {row} has the file {path!r}, and its stream includes none.",
                remedy="Set include_files: true for the stream in the configured catalog.",
            )
        if not url or not path:
            raise SourceFailedError(
                f"record {row} has a file_reference without staging_file_url or source_file_relative_path.",
                remedy="Upgrade the source.",
            )
        try:
            key = self._names.file_key(path)
        except ValueError as error:
            raise SourceFailedError(
                f"record {row}: the file {path!r} cannot be copied: {error}.", remedy="Rename it in the source."
            ) from error
        parts = urlsplit(url)
        local = unquote(parts.path) if parts.scheme == "file" else url
        return _Copy(Path(local), key, reference.file_size_bytes, row), self._plan.file_path

    def _copy_all(self, copies: list[_Copy]) -> None:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="copy") as pool:
            for copied, (upload, receipt) in zip(copies, pool.map(self._stage, copies), strict=True):
                before = self._staged.pop(copied.key, None)
                if before is not None:
                    before[0].abandon(RuntimeError("the path came again"))
                self._staged[copied.key] = upload, receipt

    def _stage(self, copied: _Copy) -> tuple[StagedUpload, Receipt]:
        try:
            size = copied.path.stat().st_size if copied.path.is_file() else None
            if size is None:
                raise _make_error(copied, "there is no such file here")
            if copied.size is not None and size != copied.size:
                raise _make_error(copied, f"it has {size:,} bytes, and its record says {copied.size:,}")
            upload = self._begin(copied.key, size)
            sent = _send_file(copied.path, upload.write)
        except OSError as error:
            raise _make_error(copied, str(error)) from error
        uploaded = upload.finish()
        if sent != size:
            raise _make_error(copied, f"it changed while it was copied, from {size:,} bytes to {sent:,}")
        if self._plan is not None and self._plan.deletes:
            copied.path.unlink(missing_ok=True)
        facts = FileFacts(
            rows=0,
            partition=self._partition,
            seq=-1,
            first_index=copied.row,
            engine=COPIED,
            row_groups=0,
            requests={"POST": 1, "PUT": len(uploaded.parts)},
        )
        return upload, Receipt.of(uploaded, facts)

    def _begin(self, key: str, size: int) -> StagedUpload:
        # Parts are larger where a file would have too many.
        part = max(self._limits.part_bytes, -(-size // (MAX_PARTS - 1)))
        limits = self._limits.model_copy(update={"part_bytes": part})
        upload = StagedUpload(self._clients.s3, self._access, key, metadata=self._metadata, limits=limits)
        with self._lock:
            self._begun.append(upload)
        return upload


def _send_file(path: Path, write: Callable[[bytes], int]) -> int:
    sent = 0
    with path.open("rb") as source:
        while block := source.read(_BLOCK):
            sent += write(block)
    return sent


def _make_error(copied: _Copy, why: str) -> SourceFailedError:
    return SourceFailedError(
        f"record {copied.row}: its file {str(copied.path)!r} cannot be copied: {why}.",
        remedy="Let the load run where the source has put the file, before anybody deletes it.",
    )
