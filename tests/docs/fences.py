"""The code in the pages, and where it stands."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@dataclass(frozen=True)
class Fence:
    """One block; ``page`` is relative to the repository, ``line`` the first of its code."""

    page: str
    line: int
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def list_fences() -> list[Fence]:
    """Every block of every page, those in lists and quotes included."""
    parser = MarkdownIt()
    return [
        Fence(str(page.relative_to(ROOT)), token.map[0] + 2, token.info.strip(), token.content)
        for page in PAGES
        for token in parser.parse(page.read_text("utf-8"))
        # Sphinx's own directives are no code.
        if token.type in {"fence", "code_block"} and token.map is not None and not token.info.startswith("{")
    ]
