"""Notes on large files that one task reads."""

from typing import Any

import pyarrow as pa

from lakewriter.source.files.file_reader import Look
from lakewriter.source.files.file_source import OpenedFiles
from lakewriter.source.files.folder_listing import Listing
from lakewriter.source.files.stored_files import StoredFile


def test_large_file_without_a_charset_is_not_noted():
    """It is cut at blocks of its own."""
    nothing: Any = None
    look = Look(pa.schema([]), ((StoredFile("a", 1 << 40, "1"), object()),))
    assert OpenedFiles(nothing, look, Listing(), False, "parquet").notes == ()
