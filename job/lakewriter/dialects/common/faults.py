"""Report faults that are found after a file's keys are checked, with the line of the key, as the checks of keys do."""

from collections.abc import Iterator
from contextlib import contextmanager

from lakewriter.dialects.common.source_files import Location
from lakewriter.dialects.common.yaml_text import Document
from lakewriter.errors import LakeError, SpecInvalidError


class FaultError(Exception):
    """What is wrong at one key. The code that raises it knows the key; ``locate_faults`` knows the files."""

    def __init__(
        self, location: Location, message: str, *, remedy: str = "", kind: type[LakeError] = SpecInvalidError
    ) -> None:
        super().__init__(message)
        self.location = location
        self.message = message
        self.remedy = remedy
        self.kind = kind


@contextmanager
def locate_faults(document: Document) -> Iterator[None]:
    """Raise each fault as the error that it is, with the file and the line of its key."""
    try:
        yield
    except FaultError as fault:
        where = document.describe_position(fault.location)
        raise fault.kind(f"{where}: {fault.message}", remedy=fault.remedy) from fault
