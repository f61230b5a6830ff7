"""Write a page for each vendor of what differs between its documents and Lakewriter: the rows of docs/documents.md
whose state is *differs*.

scripts/reference
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
DOCUMENTS: Final = "documents.md"
SECTION: Final = re.compile(r"^## (?P<title>[^\n]+): (?P<count>\d+)\n(?P<body>.*?)(?=^## |\Z)", re.M | re.S)
ROW: Final = re.compile(
    r"^\| (?P<what>.+?) \| `(?P<built>[^`|]+)` \| `(?P<test>[^`|]+)::(?P<name>\w+)` "
    r"\| (?P<state>\w+) \| (?P<here>.*?) ?\|$",
    re.M,
)
DIFFERS: Final = "differs"
VENDORS: Final[Mapping[str, tuple[str, str]]] = {
    "Supaflow": ("supaflow", "guide-supaflow.md"),
    "Airbyte": ("airbyte", "guide-airbyte.md#differences"),
    "Hero Pixel": ("heropixel", "guide-airbyte.md#differences"),
    "Estuary": ("estuary", "guide-estuary.md"),
}
"""The end of the page's name and the vendor's guide, by the first words of the vendor's sections."""


def make_pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    text = (FOLDER / DOCUMENTS).read_text("utf-8")
    return {f"differences-{name}.md": _write_page(vendor, guide, text) for vendor, (name, guide) in VENDORS.items()}


def _write_page(vendor: str, guide: str, text: str) -> str:
    sections = [section for section in SECTION.finditer(text) if section["title"].startswith(vendor)]
    lines = [line for section in sections for line in _write_section(section)]
    return "\n".join(
        [
            f"# What differs from {vendor}'s documents",
            "",
            "Lakewriter does something else than these statements of the vendor's documents say. It keeps every other",
            f"one in [what the documents say]({DOCUMENTS}), from which this page is written.",
            f"[The guide]({guide}) has what the documents leave open, and how Lakewriter differs from the vendor's",
            "product.",
            *lines,
            "",
        ]
    )


def _write_section(section: re.Match[str]) -> Iterator[str]:
    rows = [row for row in ROW.finditer(section["body"]) if row["state"] == DIFFERS]
    yield from (
        "",
        f"## {section['title']}: {len(rows)} of {section['count']}",
        "",
        "| the document | here |",
        "|---|---|",
    )
    for row in rows:
        yield f"| {row['what']} | {row['here']} |"


if __name__ == "__main__":
    for page, content in make_pages().items():
        (FOLDER / page).write_text(content, "utf-8")
