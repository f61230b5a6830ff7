"""Render a page as one self-contained HTML file that prints well."""

from functools import cache
from typing import Final

from jinja2 import Template
from markupsafe import Markup, escape

from infra.review.jinja_environment import make_environment
from infra.review.page import Page

_TEMPLATE: Final = "page.html"
_STYLE: Final = "style.css"


def render(page: Page) -> str:
    """Render the whole document."""
    return _open_template().render(page=page)


@cache
def _open_template() -> Template:
    environment = make_environment()
    environment.filters["breaks"] = break_lines
    assert environment.loader is not None
    style, _, _ = environment.loader.get_source(environment, _STYLE)
    return environment.get_template(_TEMPLATE, globals={"style": Markup(style)})


def break_lines(text: str, marks: str = "/") -> Markup:
    """Escape ``text`` and allow line breaks after the ``marks``."""
    escaped = escape(text)
    for mark in marks:
        escaped = Markup(escaped.replace(mark, Markup(f"{mark}<wbr>")))
    return escaped
