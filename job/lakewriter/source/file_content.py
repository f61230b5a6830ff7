"""Compare how a file that Spark reads begins with the format that it is read as."""

from typing import Final

from lakewriter.errors import SourceFailedError
from lakewriter.source.file_look import Head
from lakewriter.source.files.blocks import EXPORT, MAGIC
from lakewriter.source.files.judge import guess_format, show_start
from lakewriter.spec.specification import Read

_BINARY: Final = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}


def require_content(head: Head, read: Read, table: str) -> None:
    """Raise what a load would fail with where a file is not what ``format`` says.

    What the product's own readers say of a file they say themselves, when it is opened.
    """
    kind = str(read.format).lower()
    if kind not in _BINARY or head.data.startswith(next(start for start, name, _ in MAGIC if name == kind)):
        return
    guess = guess_format(head.data)
    what = next((said for start, _, said in MAGIC if head.data.startswith(start)), "")
    raise SourceFailedError(
        f"table {table!r}: {head.path!r} is not {'an' if kind[0] in 'ao' else 'a'} {_BINARY[kind]} file: "
        f"{f'it is {what}' if what else f'it begins with {show_start(head.data)}'}.",
        remedy=f"Set format: {guess}, or name the file that is meant." if guess else EXPORT,
    )
