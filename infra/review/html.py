"""Render a page as one self-contained HTML file that prints well."""

from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from infra.review.page import Code, Page, Strong, list_lines

_TEMPLATE: Final = "page.html"
_STYLE: Final = "style.css"


def render(page: Page) -> str:
    """Render the whole document."""
    return _open_template().render(page=page)


@cache
def _open_template() -> Template:
    loader = PackageLoader("infra.review", package_path="")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style, _, _ = loader.get_source(environment, _STYLE)
    environment.filters |= {"lines": list_lines, "breaks": break_lines}
    environment.tests |= {"code": lambda line: isinstance(line, Code), "strong": lambda line: isinstance(line, Strong)}
    return environment.get_template(_TEMPLATE, globals={"style": Markup(style)})


def break_lines(text: str, marks: str = "/") -> Markup:
    """Escape ``text`` and allow line breaks after the ``marks``."""
    escaped = escape(text)
    for mark in marks:
        escaped = Markup(escaped.replace(mark, Markup(f"{mark}<wbr>")))
    return escaped
