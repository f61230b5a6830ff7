"""Record the source files that a table's loads have read, in objects that the table's state names.

An object is gzip of JSON lines: the job id of a load, then a line for each file that it was the first to read.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.errors import StateLostError
from lakewriter.records.input_records import InputPart, Inputs, JoinedParts
from lakewriter.spec.listed_files import ListedFile

MOST_FILES: Final = 50_000
"""The files in a part, about 8 MB of JSON and 2 MB compressed."""
MOST_PARTS: Final = 20
"""How many parts with fewer files a state names before they are joined: each later load reads all of them."""
_LEVEL: Final = 6


@dataclass(frozen=True)
class Compared:
    """The files of a listing that earlier loads have read: ``again`` with the same contents, ``changed`` with
    others."""

    again: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()


def compare_files(control: Control, inputs: Inputs, files: Iterable[ListedFile]) -> Compared:
    """Compare a listing with the record; ``STATE_LOST`` where a part of the record is gone."""
    listed = {file.uri: file for file in files}
    again, seen = set[str](), set[str]()
    for _, file in _read_parts(control, inputs.parts, set(inputs.without)):
        now = listed.get(file.uri)
        if now is not None:
            (again if now.has_contents_of(file) else seen).add(file.uri)
    return Compared(frozenset(again), frozenset(seen - again))


def write_files(control: Control, attempt: str, job_id: str, files: Sequence[ListedFile]) -> tuple[InputPart, ...]:
    """Write the files that a load is the first to read; return the parts that hold them."""
    return _write_parts(control, attempt, ((job_id, file) for file in sorted(files, key=lambda file: file.uri)))


def join_parts(control: Control, attempt: str, inputs: Inputs) -> JoinedParts | None:
    """Join small parts where there are many, without the files of loads that were undone; None where there are few."""
    small = [part for part in inputs.parts if part.files < MOST_FILES // 2]
    if len(small) <= MOST_PARTS and len(inputs.without) <= MOST_PARTS:
        return None
    # The jobs that are left out of every part need no longer be named.
    chosen = small if len(inputs.without) <= MOST_PARTS else inputs.parts
    joined = _write_parts(control, attempt, _read_parts(control, chosen, set(inputs.without)))
    without = inputs.without if len(chosen) == len(inputs.parts) else ()
    return JoinedParts(parts=joined, of=tuple(part.key for part in chosen), without=without)


def _write_parts(control: Control, attempt: str, files: Iterable[tuple[str, ListedFile]]) -> tuple[InputPart, ...]:
    parts = []
    left = iter(files)
    while some := list(islice(left, MOST_FILES)):
        body = gzip.compress(b"\n".join(_write_lines(some)), _LEVEL, mtime=0)
        digest = hashlib.sha256(body).hexdigest()
        # The key has the attempt. An attempt could otherwise name an older object that is about to be cleared away,
        # since no state names it.
        key = control.keys.inputs(control.table_id, f"{attempt}-{digest[:32]}")
        control.write_once(key, body, keep=True)
        parts.append(InputPart(key=key, sha256=digest, length=len(body), files=len(some)))
    return tuple(parts)


def _write_lines(files: Iterable[tuple[str, ListedFile]]) -> Iterator[bytes]:
    last = None
    for job_id, file in files:
        if job_id != last:
            yield json.dumps(job_id).encode()
            last = job_id
        yield json.dumps([file.uri, file.size, file.etag, file.modified], separators=(",", ":")).encode()


def _read_parts(control: Control, parts: Sequence[InputPart], without: set[str]) -> Iterator[tuple[str, ListedFile]]:
    """Yield the files of the parts with the job ids of their loads, but for those that were undone."""
    for first in range(0, len(parts), MOST_PARTS):
        some = parts[first : first + MOST_PARTS]
        for body in call_all(lambda part: _read_part(control, part), some):
            job_id = ""
            for line in gzip.decompress(body).split(b"\n"):
                content: Any = json.loads(line)
                if isinstance(content, str):
                    job_id = content
                elif job_id not in without:
                    yield job_id, ListedFile(*content)


def _read_part(control: Control, part: InputPart) -> bytes:
    body = control.read_body(part.key)
    if body is None or hashlib.sha256(body).hexdigest() != part.sha256:
        why = "is not there" if body is None else "is not as a load wrote it: its SHA-256 differs"
        files = f"{part.files:,} file{'s'[: part.files != 1]}"
        raise StateLostError(
            f"{part.key}, which names {files} that loads of {control.table_id} have read, {why}.",
            remedy="Restore the object from its bucket's versions; or say which files count as read: "
            f"lakewriter reset LAKE {control.table_id} --files-read --reason TEXT",
        )
    return body
