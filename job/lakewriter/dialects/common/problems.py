"""Pydantic's findings in the words of this project: place, value, what was expected, the nearest known key."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from lakewriter.dialects.common.source_files import Location
from lakewriter.dialects.common.yaml_text import Document

_CONFIDENTIAL: Final = re.compile(r"secret|passw|pwd|token|credential|external_?id|access_?key|url|^options$", re.I)
"""Keys whose values, and those below them, may hold a secret: no message shows them."""

_EXPECTED: Final = {
    "string_type": "text",
    "is_instance_of": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
}

KnownKeys = Callable[[Location], Iterable[str]]


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known word most like ``word``, or nothing."""
    close = difflib.get_close_matches(str(word).lower(), {str(k).lower(): k for k in known}, n=1, cutoff=0.6)
    found = next((k for k in known if close and str(k).lower() == close[0]), None)
    return f"; did you mean {found!r}?" if found is not None else ""


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys a file may give for ``model``."""
    return [field.alias or name for name, field in model.model_fields.items()]


def model_at(model: type[BaseModel], steps: Sequence[str | int]) -> type[BaseModel]:
    """The model of the mapping that ``steps`` lead to from one of ``model``; the last one met where none is."""
    for step in steps:
        field = model.model_fields.get(str(step))
        found = next(models(field.annotation), None) if field else None
        model = found or model
    return model


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Those in an annotation, such as that of ``tuple[Trust, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models(inner)


def problems(error: ValidationError, document: Document, known_keys: KnownKeys, tags: Sequence[str]) -> list[str]:
    """One line for each place; ``tags`` are the union tags that pydantic puts into locations."""
    places: dict[Location, list[Any]] = {}
    for found in error.errors(include_url=False):
        location = _in_data(found, tuple(step for step in found["loc"] if step not in tags), document.data)
        places.setdefault(location, []).append(found)
    return [f"{document.where(place)}: {_what(found, place, known_keys)}" for place, found in places.items()]


def _in_data(found: Any, location: Location, data: Any) -> Location:
    """``location`` without the members of a union, which pydantic puts behind the place of the value."""
    if found["type"] in {"missing", "invalid_key"}:
        return location
    for end, step in enumerate(location):
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return location[:end] or location
    return location


def _what(findings: Sequence[Any], location: Location, known_keys: KnownKeys) -> str:
    """What is wrong at one place; a value that no member of a union takes has a finding for each member."""
    found = next((each for each in findings if each["type"] not in _EXPECTED), findings[0])
    kind, value, context = found["type"], found["input"], found.get("ctx", {})
    shown = _shown(value, found["loc"])
    if kind in _EXPECTED:
        return f"{shown}: expected {_either(findings)}{_unquoted(findings, value)}."
    if kind == "missing":
        return "is required."
    if kind == "invalid_key":
        return "a key is text; put it in quotes."
    if kind == "extra_forbidden":
        known = sorted(known_keys(location[:-1]))
        guess = nearest(str(location[-1]), known)
        shown = _shown(value, (*found["loc"], guess))
        return f"unknown key, with value {shown}{guess or '; known keys: ' + ', '.join(known) + '.'}"
    if kind in {"literal_error", "enum"}:
        options = [option.strip(" '") for option in str(context["expected"]).replace(" or ", ", ").split(",")]
        return f"{shown} is not allowed; expected {context['expected']}{nearest(str(value), options) or '.'}"
    if kind == "value_error":
        return _closed(context["error"]) if isinstance(value, dict) else f"{shown}: {_closed(context['error'])}"
    return f"{shown}: {found['msg'][0].lower()}{found['msg'][1:]}."


def _either(findings: Sequence[Any]) -> str:
    kinds = list(dict.fromkeys(_EXPECTED[each["type"]] for each in findings))
    if "a number" in kinds and "a whole number" in kinds:
        kinds.remove("a whole number")
    return " or ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))


def _unquoted(findings: Sequence[Any], value: Any) -> str:
    """What to do about text that YAML takes for a number, a truth value or a date."""
    scalar = value is not None and not isinstance(value, str | list | dict)
    return ", in quotes" if scalar and _EXPECTED[findings[0]["type"]] == "text" else ""


def _shown(value: Any, location: Location) -> str:
    """The value as far as it can hold no secret."""
    if any(_CONFIDENTIAL.search(str(step)) for step in location):
        return "(not shown)"
    if isinstance(value, list | dict) and value:
        return "a list" if isinstance(value, list) else "a mapping"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _closed(text: Any) -> str:
    return str(text) if str(text).endswith(("?", ".")) else f"{text}."
