"""Open the templates of the review: what a template names has to be there, and each value is escaped."""

from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from infra.review.page import Code, Strong, list_lines


def make_environment(finalize: Callable[[Any], Any] | None = None) -> Environment:
    """Make the environment of all templates; ``finalize`` escapes a value before Jinja escapes it for HTML."""
    environment = Environment(
        loader=PackageLoader(__package__, package_path=""),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["lines"] = list_lines
    environment.tests |= {"code": lambda line: isinstance(line, Code), "strong": lambda line: isinstance(line, Strong)}
    return environment
