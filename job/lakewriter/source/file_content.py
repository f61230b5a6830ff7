"""Compare how a file that Spark reads begins with the format that it is read as."""

from lakewriter.source.file_look import Head
from lakewriter.source.files.judge import find_other_format
from lakewriter.spec.specification import Read


def require_content(head: Head, read: Read, table: str) -> None:
    """Raise what a load would fail with where a file is not what ``format`` says.

    What the product's own readers say of a file they say themselves, when it is opened.
    """
    error = find_other_format(head.data, head.path, str(read.format).lower(), table)
    if error is not None:
        raise error
