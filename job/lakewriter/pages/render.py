"""Render pages from templates: self-contained, escaped, and with a policy that lets them load nothing."""

import base64
import hashlib
import re
from datetime import datetime
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lakewriter.report import format_count, format_size

# Control characters, and those that change the direction or the visibility of the text around them (Unicode TR 36):
# shown as what they are, a name cannot pass for another.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
STYLE: Final = "style.css"
MOST_TEXT: Final = 2000
"""Characters of one value: a page stays readable, whatever a source holds."""


def render(template: str, script: str | None = None, **values: Any) -> str:
    """Render a template of the package; ``script`` names the one script that the page may run."""
    environment = _open_environment()
    style, code = _read(STYLE), _read(script) if script else ""
    sources = [f"style-src '{_hash(style)}'", *([f"script-src '{_hash(code)}'"] if code else [])]
    policy = "; ".join(["default-src 'none'", *sources, "base-uri 'none'", "form-action 'none'"])
    return environment.get_template(template).render(style=Markup(style), script=Markup(code), policy=policy, **values)


def show_text(value: Any) -> Any:
    """Return text as a page shows it: characters that cannot be seen as their numbers, and no more than a page can
    bear."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    text = value if len(value) <= MOST_TEXT else f"{value[:MOST_TEXT]}…"
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def format_moment(moment: datetime | None) -> str:
    """Return a time to the second, in UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment is not None else ""


def show_time(moment: datetime) -> Markup:
    """Return the same for people and programs."""
    return Markup('<time datetime="{}">{} UTC</time>').format(f"{moment:%Y-%m-%dT%H:%M:%SZ}", format_moment(moment))


def format_seconds(seconds: float | None) -> str:
    """Return a duration in the units that a person would choose."""
    if seconds is None:
        return ""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


@cache
def _open_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("lakewriter.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=show_text,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"size": format_size, "count": format_count, "moment": format_moment, "time": show_time}
    environment.filters |= {"seconds": format_seconds, "number": "{:,}".format}
    return environment


@cache
def _read(name: str) -> str:
    source, _, _ = PackageLoader("lakewriter.pages").get_source(_open_environment(), name)
    return source


def _hash(text: str) -> str:
    """Return the name that a Content-Security-Policy has for an inline style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
