"""Render a page as Markdown for a pull request."""

import re
from functools import cache
from typing import Final

from jinja2 import Template
from markupsafe import Markup

from infra.review.jinja_environment import make_environment
from infra.review.page import Page

_TEMPLATE: Final = "page.md"
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~])")
LONG: Final = 12
"""The most rows of a section that are not folded."""


def render(page: Page) -> str:
    """Render the whole document."""
    return _open_template().render(page=page, longest=LONG)


@cache
def _open_template() -> Template:
    # Jinja's own escaping is HTML's: each value is escaped for Markdown before it.
    environment = make_environment(escape_text)
    environment.filters["code_span"] = make_code_span
    return environment.get_template(_TEMPLATE)


def escape_text(value: str) -> Markup:
    """Escape what Markdown reads as markup; what a macro or a filter has written stays."""
    return value if isinstance(value, Markup) else Markup(_SPECIAL.sub(r"\\\1", str(value)))


def make_code_span(text: str) -> Markup:
    """Write a text in a fixed-width font; a bar ends a cell even there."""
    return Markup(f"`{text.replace('|', chr(92) + '|')}`" if text else "")
