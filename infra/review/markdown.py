"""Render a page as Markdown for a pull request."""

import re
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from infra.review.page import Code, Page, Strong, list_lines

_TEMPLATE: Final = "page.md"
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~])")
LONG: Final = 12
"""The most rows of a section that are not folded."""


def render(page: Page) -> str:
    """Render the whole document."""
    return _open_template().render(page=page, longest=LONG)


@cache
def _open_template() -> Template:
    environment = Environment(
        loader=PackageLoader("infra.review", package_path=""),
        # Jinja's own escaping is HTML's: each value is escaped for Markdown before it.
        autoescape=True,
        finalize=escape_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"lines": list_lines, "code_span": make_code_span}
    environment.tests |= {"code": lambda line: isinstance(line, Code), "strong": lambda line: isinstance(line, Strong)}
    return environment.get_template(_TEMPLATE)


def escape_text(value: str) -> Markup:
    """Escape what Markdown reads as markup; what a macro or a filter has written stays."""
    return value if isinstance(value, Markup) else Markup(_SPECIAL.sub(r"\\\1", str(value)))


def make_code_span(text: str) -> Markup:
    """Write a text in a fixed-width font; a bar ends a cell even there."""
    return Markup(f"`{text.replace('|', chr(92) + '|')}`" if text else "")
