"""Compare a committed load's objects with its receipts: present, written by it, same bytes, same number of rows."""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from lakewriter import aws
from lakewriter.commit.at_once import call_all
from lakewriter.commit.conditional_writes import parse_object
from lakewriter.commit.mismatch import Kind, Mismatch
from lakewriter.commit.store import Store, StoredObject
from lakewriter.encode.parquet_footer import FIRST_BYTES, read_footer
from lakewriter.errors import LakeError
from lakewriter.receipt import Receipt
from lakewriter.records.changes import Intent

PARQUET_ENGINES: Final = ("arro3", "pyarrow")
"""Engines whose files' rows are read from the footer; other formats' files are compared by size, checksum and etag."""
_MD5: Final = re.compile("[0-9a-f]{32}")


def compare_objects(
    intent: Intent, store: Store, clients: aws.Clients, is_needed: Callable[[str], bool]
) -> list[Mismatch]:
    """Return a mismatch for each object that differs from its receipt; ``is_needed`` says whether a key is compared.

    ``clients`` read the data. An error of S3 is a mismatch of the kind ``NOT_COMPARED``.
    """

    def compare(receipt: Receipt) -> Mismatch | None:
        try:
            stored, end = _look(receipt, store, clients, intent)
            wrong = _compare(receipt, stored, intent) or _compare_rows(receipt, clients, end)
        except LakeError as error:
            return Mismatch(Kind.NOT_COMPARED, error.message, receipt.key, error.code)
        if wrong is None:
            return None
        kind, what = wrong
        return Mismatch(kind, f"s3://{clients.access.bucket}/{receipt.key}: {what}.", receipt.key)

    needed = (receipt for receipt in intent.files.without_statistics() if is_needed(receipt.key))
    return [mismatch for mismatch in call_all(compare, needed) if mismatch is not None]


def _look(
    receipt: Receipt, store: Store, clients: aws.Clients, intent: Intent
) -> tuple[StoredObject | None, bytes | None]:
    """Return the object's metadata, and its last bytes if its footer is needed: in one request where possible.

    The answer for a range has no checksum: a second request gets it, unless the etag proves the content.
    """
    if receipt.engine in PARQUET_ENGINES:
        # The bucket may be a replica, or have been moved, since the receipt was written.
        where = {"Bucket": clients.access.bucket, "Key": receipt.key, "Range": f"bytes=-{FIRST_BYTES}"}
        try:
            body, answer = aws.read_answer(clients.s3, **where)
        except (aws.ClientError, aws.BotoCoreError):
            # ``find`` below says whether the object is gone, or raises the error.
            pass
        else:
            stored = parse_object(answer)
            return stored if _is_told_by_etag(receipt, stored, intent) else store.find(receipt.key, checksum=True), body
    return store.find(receipt.key, checksum=True), None


def _is_told_by_etag(receipt: Receipt, stored: StoredObject, intent: Intent) -> bool:
    """Return whether the etag, which is made of the parts' MD5s, proves that the content is the receipt's."""
    etag = stored.etag.strip('"')
    return not stored.is_kms and not _has_foreign_etag(etag, intent) and etag in _compute_etags(receipt)


def _compare(receipt: Receipt, stored: StoredObject | None, intent: Intent) -> tuple[Kind, str] | None:
    if stored is None:
        return Kind.OBJECT_GONE, "the object is gone"
    if stored.load != intent.load and intent.catalog.abilities.keeps_metadata:
        return Kind.OBJECT_REPLACED, f"it was written by {stored.load or 'another writer'!r}"
    if stored.size != receipt.size:
        return Kind.OBJECT_CHANGED, f"it has {stored.size} bytes, expected {receipt.size}"
    checksum = _compute_checksum(receipt)
    if checksum is not None and stored.checksum not in ("", checksum):
        return Kind.OBJECT_CHANGED, f"its content changed: its CRC32 is {stored.checksum}, expected {checksum}"
    etags, etag = _compute_etags(receipt), stored.etag.strip('"')
    if etags and not stored.is_kms and not _has_foreign_etag(etag, intent) and etag not in etags:
        return Kind.OBJECT_CHANGED, f"its content changed, or it was written anew: its etag is {etag}, not {etags[0]}"
    return None


def _compute_checksum(receipt: Receipt) -> str | None:
    """Compute the CRC32 of the parts' CRC32s, as S3 keeps it for a multipart object; None where a part has none.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
    """
    parts = [part.checksum for part in receipt.parts if part.checksum]
    if receipt.checksum_algorithm != "CRC32" or len(parts) != len(receipt.parts):
        return None
    try:
        whole = zlib.crc32(b"".join(base64.b64decode(part) for part in parts))
    except ValueError:
        return "what the receipt has, which is no checksum"
    return base64.b64encode(whole.to_bytes(4, "big")).decode()


def _compute_etags(receipt: Receipt) -> tuple[str, ...]:
    """Compute the etags that the object may have; none where its parts' etags are not MD5s, as with KMS."""
    parts = [part.etag.strip('"') for part in receipt.parts]
    if not all(_MD5.fullmatch(part) for part in parts):
        return ()
    return (f"{hashlib.md5(bytes.fromhex(''.join(parts)), usedforsecurity=False).hexdigest()}-{len(parts)}",)


def _has_foreign_etag(etag: str, intent: Intent) -> bool:
    """Return whether the store is not AWS's and gives objects of several parts other etags, which prove nothing
    here."""
    return intent.access.endpoint is not None and "-" not in etag


def _compare_rows(receipt: Receipt, clients: aws.Clients, end: bytes | None) -> tuple[Kind, str] | None:
    if receipt.engine not in PARQUET_ENGINES:
        return None
    try:
        footer = read_footer(clients, clients.access.bucket, receipt.key, end)
    except (pa.ArrowException, OSError, ValueError) as error:
        return Kind.OBJECT_CHANGED, f"it cannot be read as Parquet ({str(error).splitlines()[0]})"
    if footer is None:
        return Kind.OBJECT_CHANGED, "it cannot be read as Parquet (its footer is larger than any that a load writes)"
    if footer.num_rows != receipt.rows:
        return Kind.ROWS_DIFFER, f"it has {footer.num_rows} rows, expected {receipt.rows}"
    return None
