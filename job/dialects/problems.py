"""Pydantic's findings in the words of this project: place, value, what was expected, the nearest known key."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from job.dialects.text import Document, Location

_SECRET_KEYS: Final = {"external_id", "access_key_id", "secret_access_key", "client_secret", "password"}

KnownKeys = Callable[[Location], Iterable[str]]


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known word most like ``word``, or nothing."""
    close = difflib.get_close_matches(str(word).lower(), {str(k).lower(): k for k in known}, n=1, cutoff=0.6)
    found = next((k for k in known if close and str(k).lower() == close[0]), None)
    return f"; did you mean {found!r}?" if found is not None else ""


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys a file may give for ``model``."""
    return [field.alias or name for name, field in model.model_fields.items()]


def problems(error: ValidationError, document: Document, known_keys: KnownKeys, tags: Sequence[str]) -> list[str]:
    """One line for each finding; ``tags`` are the union tags that pydantic puts into locations."""
    lines = []
    for found in error.errors(include_url=False):
        location = tuple(step for step in found["loc"] if step not in tags)
        lines.append(f"{document.where(location)}: {_what(found, location, known_keys)}")
    return lines


def _what(found: Any, location: Location, known_keys: KnownKeys) -> str:
    kind, value, context = found["type"], found["input"], found.get("ctx", {})
    shown = "(not shown)" if location and location[-1] in _SECRET_KEYS else _short(value)
    if kind == "missing":
        return "is required."
    if kind == "extra_forbidden":
        known = sorted(known_keys(location[:-1]))
        guess = nearest(str(location[-1]), known)
        return f"unknown key, with value {shown}{guess or '; known keys: ' + ', '.join(known) + '.'}"
    if kind in {"literal_error", "enum"}:
        options = [option.strip(" '") for option in str(context["expected"]).replace(" or ", ", ").split(",")]
        return f"{shown} is not allowed; expected {context['expected']}{nearest(str(value), options) or '.'}"
    if kind == "value_error":
        return (
            f"{shown}: {_closed(context['error'])}"
            if location and not isinstance(value, dict)
            else _closed(context["error"])
        )
    return f"{shown}: {found['msg'][0].lower()}{found['msg'][1:]}."


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _closed(text: Any) -> str:
    return str(text) if str(text).endswith(("?", ".")) else f"{text}."
