"""The work of ``lakewriter docs``: pages by name, sections by an error's code or by words."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import click
from rich.markdown import Markdown
from rich.markup import escape

import lakewriter
from lakewriter.cli.shared import OUT, print_json
from lakewriter.errors import SpecInvalidError
from lakewriter.exit_codes import EXIT_OK

_PACKAGE: Final = Path(lakewriter.__file__).parent
_FOLDERS: Final = (_PACKAGE / "docs", _PACKAGE.parents[1] / "docs")
"""The wheel's, and that of a clone."""
_CODES: Final = "troubleshooting"
"""The page that has a section for each alarm, each end of an execution and each error's code."""
_DECISIONS: Final = "adr/"
_UNLISTED: Final = (_DECISIONS, "reference/")
"""Folders with a page that lists what is in them."""
_HEADING: Final = re.compile(r"(#{1,4}) (.+)")
_FENCE: Final = re.compile(r"(```|~~~)(\{toctree\})?")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_WORD: Final = re.compile(r"[a-z0-9_]+")
_ENDINGS: Final = ("ing", "ed", "es", "s", "e")
_LEAST_STEM: Final = 4
_MOST_HITS: Final = 8
_EXCERPT: Final = 150
_LONG: Final = 200
"""The words of a long section: in a section with more of them each hit counts less."""
_OF_DECISIONS: Final = 0.4
"""The weight of a hit in a decision: readers who look for a way to do something need no reasons."""
_IN_TITLE: Final = 4.0
"""The weight of a word in a heading, where one in the text has 1."""
_WHOLE_TITLE: Final = 4.0
"""The weight of a page whose title has all the words and no other; that of a section is less, by its depth."""
_SAME: Final = {
    "overwrit": "replac", "reload": "replac", "refresh": "replac", "full": "whole", "each": "every", "delet": "remov",
    "dedup": "again", "duplicat": "again", "rollback": "undo", "revert": "undo", "repeat": "again", "twice": "again",
    "rotat": "chang", "pric": "cost", "bill": "cost", "expensiv": "cost", "cheap": "cost", "costly": "cost",
    "budget": "cost", "sql": "query", "queri": "query", "select": "query", "uninstall": "destroy", "daily": "new",
}  # fmt: skip
"""Stems of words that a reader may use for those of the pages."""
_PHRASES: Final = {
    r"(bad|wrong|broken|faulty) (load|run|job|import)s?": "undo load",
    r"(delete|remove|drop|take back|take out) (a|the|my|one)? ?(load|run|job)\b": "undo load",
    r"(new|daily|only new) files?\b": "files new",
}
"""Words that mean something else together than one by one: a bad load is taken back, bad rows are kept apart."""
_COMMON: Final = frozenset(
    ("a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it",
     "me", "much", "my", "of", "on", "or", "should", "that", "the", "to", "what", "will", "with")
)  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A heading and what is below it, up to the next heading; ``headings`` are those above it and its own."""

    page: str
    headings: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def title(self) -> str:
        """Its own heading."""
        return self.headings[-1]


@dataclass(frozen=True)
class Hit:
    """A section that has the words, and the line that has most of them."""

    section: Section
    score: float
    excerpt: str


def run_docs(words: Sequence[str], *, as_json: bool) -> int:
    """List the pages, print the one that ``words`` name, or show where the words occur."""
    pages = _find_pages()
    text = " ".join(words)
    if not words:
        titles = {name: page.read_text("utf-8").partition("\n")[0].strip("# `") for name, page in pages.items()}
        if as_json:
            print_json({"version": 1, "pages": titles})
            return EXIT_OK
        _show_pages(titles)
        return EXIT_OK
    given = text.lower().removeprefix("docs/").removesuffix(".md")
    names = (name for name in pages if given in (name, name.rpartition("/")[2]))
    # A page's whole name takes precedence over the last part of another page's name.
    name = given if given in pages else next(names, None)
    if name is not None:
        _print(pages[name].read_text("utf-8"), {"page": name}, as_json=as_json)
        return EXIT_OK
    sections = [section for page, path in pages.items() for section in split_sections(page, path.read_text("utf-8"))]
    upper = text.upper().replace("-", "_")
    named = [part for part in sections if part.title == upper or (part.page == _CODES and part.title == text)]
    code = next((section for section in named if section.page == _CODES), named[0] if named else None)
    if code is not None:
        whole = "\n".join((f"## {code.title}", *code.lines))
        _print(whole, {"page": code.page, "section": code.title}, as_json=as_json)
        return EXIT_OK
    hits = search(sections, text)
    if not hits and not as_json:
        codes = [section.title for section in sections if section.page == _CODES and section.title.isupper()]
        near = get_close_matches(text.upper(), codes, 2) or get_close_matches(given, pages, 2)
        near = near or ([_CODES] if "_" in text else [])
        guess = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise SpecInvalidError(f"no page has {text!r}.", remedy=f"{guess}lakewriter docs lists the pages.")
    return _show_hits(hits, as_json=as_json)


def _find_pages() -> dict[str, Path]:
    folder = next((folder for folder in _FOLDERS if (folder / "index.md").is_file()), None)
    if folder is None:
        raise SpecInvalidError("this installation has no documentation.", remedy="Install lakewriter from its wheel.")
    paths = [path for path in sorted(folder.rglob("*.md")) if path.relative_to(folder).parts[0] != "site"]
    return {path.relative_to(folder).with_suffix("").as_posix().lower(): path for path in paths}


def split_sections(page: str, text: str) -> Iterator[Section]:
    """Split a page at its headings; what looks like one in a code block is none."""
    headings: list[str] = []
    lines: list[str] = []
    fence = None
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        if headings:
            yield Section(page, tuple(headings), tuple(lines))
        headings, lines = [*headings[: len(heading[1]) - 1], heading[2].strip("` ")], []
    if headings:
        yield Section(page, tuple(headings), tuple(lines))


def search(sections: Sequence[Section], text: str) -> list[Hit]:
    """Find the sections that have most of the words, rare ones and those of headings first."""
    for phrase, meant in _PHRASES.items():
        text = re.sub(phrase, meant, text.lower())
    asked = tuple(dict.fromkeys(_list_stems(text)))
    counted = [(s, set(_list_stems(" ".join(s.headings))), Counter(_list_stems(" ".join(s.lines)))) for s in sections]
    everywhere = Counter(word for _, title, body in counted for word in title | body.keys())
    weights = {word: math.log(1 + len(sections) / (1 + everywhere[word])) for word in asked}
    hits = []
    for section, title, body in counted:
        there = sum(word in title or word in body for word in asked)
        if there * 2 > len(asked):
            length = (1 + sum(body.values()) / _LONG) ** 0.5
            score = sum(weights[w] * (_IN_TITLE * (w in title) + math.log1p(body[w]) / length) for w in asked)
            share = _OF_DECISIONS if section.page.startswith(_DECISIONS) else 1.0
            if set(_list_stems(section.title)) == set(asked):
                share *= _WHOLE_TITLE / len(section.headings)
            hits.append(Hit(section, score * there * share, _cut_excerpt(section, asked, weights)))
    return sorted(hits, key=lambda hit: -hit.score)[:_MOST_HITS]


def _list_stems(text: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]


def _stem(word: str) -> str:
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= _LEAST_STEM), "")
    stem = word.removesuffix(ending)
    return _SAME.get(stem, stem)


def _cut_excerpt(section: Section, asked: Sequence[str], weights: Mapping[str, float]) -> str:
    """Cut the part of the text that has most of the words."""
    text = _LINK.sub(r"\1", " ".join(line.strip("|#>- ") for line in section.lines if line.strip("-| ")))
    parts = re.split(r"(?<=[.:|]) ", text)
    best = max(parts, key=lambda part: sum(weights[word] for word in set(_list_stems(part)) & set(asked)))
    start = text.index(best)
    cut = text[start : start + _EXCERPT]
    return f"{cut.rpartition(' ')[0]} ..." if len(text) > start + _EXCERPT else cut


def _show_pages(titles: dict[str, str]) -> None:
    width = max(len(name) for name in titles if "/" not in name)
    for name, title in titles.items():
        if not name.startswith(_UNLISTED):
            OUT.print(f"{name:<{width}}  {title}", markup=False, soft_wrap=True)
    OUT.print(
        "\nlakewriter docs PAGE prints one; lakewriter docs WORDS... finds the pages that have them.", markup=False
    )


def _show_hits(hits: Sequence[Hit], *, as_json: bool) -> int:
    if as_json:
        rows = [{"page": h.section.page, "section": " > ".join(h.section.headings), "excerpt": h.excerpt} for h in hits]
        print_json({"version": 1, "hits": rows})
        return EXIT_OK
    for hit in hits:
        where = " > ".join(hit.section.headings)
        OUT.print(f"[bold]{escape(hit.section.page)}[/]  {escape(where)}", soft_wrap=True)
        OUT.print(f"    {hit.excerpt}", markup=False)
    return EXIT_OK


def _print(text: str, where: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json({"version": 1, **where, "text": text})
    elif OUT.is_terminal:
        with OUT.pager(styles=True):
            OUT.print(Markdown(_LINK.sub(r"\1", text)))
    else:
        click.echo(text)
