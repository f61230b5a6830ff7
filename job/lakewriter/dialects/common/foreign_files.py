"""Files of the vendors that are given where another file is expected: what they are, and where they belong."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lakewriter.dialects.common.source_files import SpecFile
from lakewriter.dialects.common.yaml_text import Document
from lakewriter.errors import SpecInvalidError

Content = Mapping[str, Any]


@dataclass(frozen=True)
class ForeignFile:
    """A kind of file, and what to do with it; ``{name}`` is the file's."""

    what: str
    remedy: str
    is_kind: Callable[[Content], bool]


DESTINATION: Final = ForeignFile(
    "a destination alone",
    "Put them under 'destination' of a lake.yaml, with 'type', beside 'pipeline' and 'tables'.",
    lambda content: "s3_bucket_name" in content,
)
"""Whatever else it may be: it comes last."""


def refuse_foreign(document: Document, kinds: Sequence[ForeignFile]) -> None:
    """Raise ``SPEC_INVALID`` where a vendor's file is given as the lake.yaml."""
    kind = recognise_file(document.data, kinds)
    if kind is not None:
        raise SpecInvalidError(
            f"{document.name}: this is {kind.what}, expected a lake.yaml.",
            remedy=kind.remedy.format(name=document.name),
        )


def refuse_other(
    file: SpecFile, expected: Collection[ForeignFile], position: str, kinds: Sequence[ForeignFile]
) -> None:
    """Raise ``SPEC_INVALID`` where the file named at ``position`` is another of a vendor's."""
    kind = recognise_file(file.content, kinds)
    if kind is not None and kind not in expected:
        raise SpecInvalidError(
            f"{position}: {file.name} is {kind.what}, expected {next(iter(expected)).what}.",
            remedy=kind.remedy.format(name=file.name),
        )


def recognise_file(content: Any, kinds: Sequence[ForeignFile]) -> ForeignFile | None:
    """Return the kind of a file by its keys; None for a lake.yaml and for anything unknown."""
    if not isinstance(content, Mapping) or "pipeline" in content or "destination" in content:
        return None
    return next((kind for kind in (*kinds, DESTINATION) if kind.is_kind(content)), None)
