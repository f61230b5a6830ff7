"""Write a page for each vendor of what differs between its documents and Lakewriter: the rows of
tests/docs/documents.csv whose state is *differs*.

scripts/reference
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
DOCUMENTS: Final = FOLDER.parent / "tests" / "docs" / "documents.csv"
DIFFERS: Final = "differs"
VENDORS: Final[Mapping[str, tuple[str, str]]] = {
    "Supaflow": ("supaflow", "guide-supaflow.md"),
    "Airbyte": ("airbyte", "guide-airbyte.md#differences"),
    "Hero Pixel": ("heropixel", "guide-airbyte.md#differences"),
    "Estuary": ("estuary", "guide-estuary.md"),
}
"""The end of the page's name and the vendor's guide, by the first words of the vendor's sections."""


@dataclass(frozen=True)
class Statement:
    """What a vendor's document says, where it is built in and which test holds it.

    The state is same, more where Lakewriter does or refuses something else too, or differs where a connection that
    moves over may notice; ``here`` says what.
    """

    document: str
    statement: str
    built_in: str
    held_by: str
    state: str
    here: str


@cache
def read_statements() -> Sequence[Statement]:
    """Read every statement of the five documents, and the keys that none has."""
    with DOCUMENTS.open(encoding="utf-8", newline="") as file:
        return [Statement(**row) for row in csv.DictReader(file)]


def make_pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    return {f"differences-{name}.md": _write_page(vendor, guide) for vendor, (name, guide) in VENDORS.items()}


def _write_page(vendor: str, guide: str) -> str:
    documents = dict.fromkeys(each.document for each in read_statements() if each.document.startswith(vendor))
    lines = [line for document in documents for line in _write_section(document)]
    return "\n".join(
        [
            f"# What differs from {vendor}'s documents",
            "",
            "Lakewriter does something else than these statements of the vendor's documents say, and keeps all others.",
            "Each statement, with the code that keeps it and its test, is a row of `tests/docs/documents.csv`, from",
            f"which this page is written. [The guide]({guide}) has what the documents leave open, and how Lakewriter",
            "differs from the vendor's product.",
            *lines,
            "",
        ]
    )


def _write_section(document: str) -> Iterator[str]:
    statements = [each for each in read_statements() if each.document == document]
    differing = [each for each in statements if each.state == DIFFERS]
    yield from (
        "",
        f"## {document}: {len(differing)} of {len(statements)}",
        "",
        "| the document | here |",
        "|---|---|",
    )
    for each in differing:
        cells = (text.replace("|", "\\|") for text in (each.statement, each.here))
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    for page, content in make_pages().items():
        (FOLDER / page).write_text(content, "utf-8")
