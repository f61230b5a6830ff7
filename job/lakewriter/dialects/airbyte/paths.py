"""Airbyte's directory and file name variables, as parts of one key template."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from lakewriter.dialects.airbyte.file_formats import EXTENSIONS
from lakewriter.dialects.common.problems import suggest_nearest
from lakewriter.naming import drop_marks
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout

DEFAULT_PATH: Final = "${NAMESPACE}/${STREAM_NAME}/${YEAR}_${MONTH}_${DAY}_${EPOCH}_"
DEFAULT_FILE: Final = "{part_number}{format_extension}"

_DIRECTORY: Final[dict[str, str | tuple[str, str]]] = {
    "YEAR": ("date", "%Y"),
    "MONTH": ("date", "%m"),
    "DAY": ("date", "%d"),
    "HOUR": ("date", "%H"),
    "MINUTE": ("date", "%M"),
    "SECOND": ("date", "%S"),
    "MILLISECOND": ("millisecond", ""),
    "EPOCH": ("epoch", ""),
    "UUID": ("uuid", ""),
    "SYNC_ID": ("sync_id", ""),
}
DIRECTORY_VARIABLES: Final = ("NAMESPACE", "STREAM_NAME", *_DIRECTORY)
_FILE: Final[dict[str, tuple[str, str]]] = {
    "date": ("date", "%Y_%m_%d"),
    "timestamp": ("epoch", ""),
    "timestamp:millis": ("epoch", ""),
    "timestamp:micros": ("epoch_micros", ""),
    "timestamp:micro": ("epoch_micros", ""),
    "part_number": ("part", ""),
    "sync_id": ("sync_id", ""),
}
FILE_VARIABLES: Final = (
    "{date}", "{date:yyyy_MM}", "{timestamp}", "{timestamp:millis}", "{timestamp:micros}", "{part_number}",
    "{sync_id}", "{format_extension}",
)  # fmt: skip
_LETTERS: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_DATE_FORMAT: Final = re.compile("yyyy|MM|dd|HH|mm|ss|[^A-Za-z/]")
_LOOKALIKE: Final = re.compile(r"\{[^{}]*\}|[{}]|\$(?:" + "|".join(DIRECTORY_VARIABLES) + r")(?![A-Za-z0-9])")
"""A file name's variable or a stray brace in a directory, and a directory's variable without its braces."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9/!_.*')(&$@=;:+,?-]")


def make_s3_safe(name: str) -> str:
    """Return ``name`` without accents, and with ``_`` for every character that S3 does not call safe."""
    return _UNSAFE.sub("_", drop_marks(name))


def check_directory(text: str) -> str:
    """Return ``text``; raise ``ValueError`` for a variable that no directory has."""
    list(_parse_directory(text, "", "", strict=True))
    return text


def check_file(text: str) -> str:
    """Return ``text``; raise ``ValueError`` for a variable or a space that no file name has."""
    if re.search(r"\s", text):
        raise ValueError("a file name pattern has no spaces")
    list(_parse_file(text, ""))
    return text


def make_layout(
    bucket_path: str, path_format: str, file_pattern: str, names: tuple[str, str], end: str, *, has_files: bool = False
) -> Layout:
    """Return the layout of a stream; ``names`` are namespace and stream, ``end`` the format's extension. ``has_files``
    is true where files belong to its records."""
    namespace, stream = map(make_s3_safe, names)
    directory = tuple(_parse_directory(f"{bucket_path}/{path_format}", namespace, stream))
    templates = [
        Template.of(*directory, *_parse_file(file_pattern, extension))
        for extension in (end, *chain(*EXTENSIONS.values()))
    ]
    variants = tuple(template for template in dict.fromkeys(templates) if template != templates[0])
    return Layout("", templates[0], variants=variants, folder=Template.of(*directory) if has_files else None)


def find_stream_directory(bucket_path: str, path_format: str, names: tuple[str, str]) -> str:
    """Return the directory that is a stream's own: up to the last one that its name is in, without slashes around it.

    Blank where the stream's name is blank or not in a directory, where another variable comes before it, or where the
    namespace comes after it, so that streams of one name share the directory.
    """
    directories = f"{bucket_path}/{path_format}".split("/")[:-1]
    last = max((number for number, name in enumerate(directories, 1) if "${STREAM_NAME}" in name), default=0)
    directory, rest = "/".join(directories[:last]), "/".join(f"{bucket_path}/{path_format}".split("/")[last:])
    namespace, stream = map(make_s3_safe, names)
    template = Template.of(*_parse_directory(directory, namespace, stream))
    if template.variables or "${NAMESPACE}" in rest or not stream.strip("/"):
        return ""
    return template.start.strip("/")


def find_constant_prefix(bucket_path: str) -> str:
    """Return the bucket path up to its first variable, without slashes around it."""
    return Template.of(*_parse_directory(bucket_path.partition("${")[0], "", "")).start.strip("/")


def _parse_directory(
    text: str, namespace: str, stream: str, *, strict: bool = False
) -> Iterator[str | tuple[str, str]]:
    variables = {"NAMESPACE": namespace, "STREAM_NAME": stream, **_DIRECTORY}
    for literal, variable in _split_variables(text, r"\$\{([^{}]*)\}"):
        if literal:
            if strict:
                _refuse_lookalikes(literal)
            yield literal
        if variable is not None:
            if variable not in variables:
                guess = suggest_nearest(variable, DIRECTORY_VARIABLES)
                raise ValueError(f"'${{{variable}}}' is no variable; {_list_variables()}{guess}")
            yield variables[variable]


def _refuse_lookalikes(literal: str) -> None:
    """Refuse text that looks like a variable: the vendor writes it unchanged, but the user meant a variable."""
    if "${" in literal:
        raise ValueError(f"{literal!r} has a variable that does not end; expected ${{NAME}}")
    match = _LOOKALIKE.search(literal)
    if match:
        guess = suggest_nearest(match[0].strip("${}"), DIRECTORY_VARIABLES)
        raise ValueError(f"{match[0]!r} is no variable of a directory; {_list_variables()}{guess}")


def _list_variables() -> str:
    return "known: " + ", ".join(f"${{{name}}}" for name in DIRECTORY_VARIABLES)


def _parse_file(text: str, extension: str) -> Iterator[str | tuple[str, str]]:
    for literal, variable in _split_variables(text, r"\{([^{}]*)\}"):
        if literal:
            if "{" in literal or "}" in literal:
                raise ValueError(f"{literal!r} has a brace without its other; expected {{name}}")
            yield literal
        if variable == "format_extension":
            yield extension
        elif variable is not None:
            yield _FILE[variable] if variable in _FILE else ("date", _parse_date_format(variable))


def _parse_date_format(variable: str) -> str:
    name, _, text = variable.partition(":")
    letters = _DATE_FORMAT.findall(text)
    if name != "date" or not text or "".join(letters) != text:
        guess = suggest_nearest(f"{{{variable}}}", FILE_VARIABLES)
        raise ValueError(f"'{{{variable}}}' is no variable; known: {', '.join(FILE_VARIABLES)}{guess}")
    return "".join(_LETTERS.get(letter, letter.replace("%", "%%")) for letter in letters)


def _split_variables(text: str, pattern: str) -> Iterator[tuple[str, str | None]]:
    """Yield each literal with the variable behind it; the last has none."""
    end = 0
    for match in re.finditer(pattern, text):
        yield text[end : match.start()], match[1]
        end = match.end()
    yield text[end:], None
