"""Pydantic's findings in the words of this project: place, value, what was expected, the nearest known key."""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from lakewriter.dialects.common.source_files import Location, describe_kind
from lakewriter.dialects.common.yaml_text import Document

MAX_PROBLEMS: Final = 50
"""The most problems that a message lists."""

_CONFIDENTIAL: Final = re.compile(
    r"secret|passw|pwd|token|credential|external_?id|access_?key|api_?key|url|^options$", re.I
)
"""Keys whose values, and those below them, may hold a secret: no message shows them."""

_EXPECTED: Final = {
    "string_type": "text",
    "is_instance_of": "text",
    "string_unicode": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of fewer digits",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
}
_BOUNDS: Final = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_too_short": "text that is not blank",
    "string_too_long": "at most {max_length} characters",
}
_COUNTS: Final = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}
FORMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("kms_key_arn", "secret_kms_key_arns", "artifact_kms_key_arn", "catalog_kms_key_arn", "earlier_kms_key_arns"),
        "a key's ARN such as 'arn:aws:kms:us-east-1:123456789012:key/0f1e2d3c'",
    ),
    "jars": "an object such as 's3://acme-artifacts/driver.jar', or a file beside lake.yaml such as 'driver.jar'",
    "left_behind": "a place such as 's3://acme-lake/data'",
    "operators": "the ARN of a role or user such as 'arn:aws:iam::123456789012:role/oncall'",
    "job_role_arn": "a role's ARN such as 'arn:aws:iam::123456789012:role/LakeWriter'",
    "ec2": "a role's ARN such as 'arn:aws:iam::123456789012:role/Host'",
    "cluster": "a cluster's ARN such as 'arn:aws:eks:us-east-1:123456789012:cluster/tools'",
    "provider": "a provider's ARN such as 'arn:aws:iam::123456789012:oidc-provider/oidc.example.org/id/A1'",
    "namespace": "a name of Kubernetes, in lower-case letters, digits and '-'",
    "service_account": "a name of Kubernetes, in lower-case letters, digits, '-' and '.'",
    "topic_arn": "a topic's ARN such as 'arn:aws:sns:us-east-1:123456789012:alarms'",
    "permissions_boundary_arn": "a policy's ARN such as 'arn:aws:iam::123456789012:policy/Boundary'",
    "role_path": "a path such as '/teams/data/'",
    "artifact_bucket": "the name of a bucket",
    "bucket": "the name of a bucket",
    "catalog_account": "12 digits, in quotes",
    "bootstrap_qualifier": "at most 10 lower-case letters and digits",
    "optimizer_role": "a role's name, with its path if it has one, such as 'data/nyc-optimizers', or its ARN",
    "environment": "a variable's name such as 'HTTPS_PROXY'",
    "name": "at most 32 lower-case letters, digits and '-', a letter first",
}
"""These words say what the patterns of keys ask for."""
_EXAMPLES: Final[Mapping[str, str]] = {
    "columns": "{amount: 'decimal(12,2)'}",
    "cursor": "updated_at",
    "destination": "{type: lakewriter-s3, location: s3://acme-lake/production, region: us-east-1}",
    "expect": "[{unique: [order_id]}]",
    "location": "s3://acme-lake/production",
    "options": "{header: true}",
    "order_by": "[updated_at]",
    "partition_by": "[day(created_at)]",
    "path": "orders/*.csv",
    "pipeline": "shop",
    "primary_key": "[order_id]",
    "read": "{format: csv, path: orders/*.csv}",
    "region": "us-east-1",
    "s3_bucket_name": "acme-lake",
    "schedule": "{cron: '0 6 * * ? *'}",
    "schema": "public",
    "sort_by": "[customer_id]",
    "stages": "{prod: {destination: {location: s3://acme-lake/production}}}",
    "table": "orders",
    "tables": "[{table: orders, read: {format: csv, path: orders/*.csv}}]",
    "tracking": "[loaded_at, load_id]",
    "views": "{orders: {format: csv, path: orders/*.csv}}",
}
"""Values as a file may have them, of keys for which one is worth more than the name of its kind."""
_PERCENT: Final = re.compile(r"(\d{1,3}(?:\.\d{1,4})?) ?%")

_ALIKE: Final = 0.6
_MUCH_ALIKE: Final = 0.75
_EQUALLY: Final = 0.01
_LONGEST: Final = 80
"""Characters of a value or a key that are shown and compared."""

_NAMED: Final = re.compile(r"'(\w+)'")
"""A key in the text of an error."""

_NUMBER: Final = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
_NUMBERS: Final = ("a number", "a whole number")

_USER_INFO: Final = re.compile(r"""(\w+://|)[^\s'"]*:\S*@""")
"""The name and password of a URL, with or without its beginning."""
_QUERY: Final = re.compile(r"""(\w+://[^\s'"?]*\?)[^\s'"]*=[^\s'"]*""")
"""The parameters of a URL, of which one may be a token."""

KnownKeys = Callable[[Location], Iterable[str]]
Tags = Mapping[str, Sequence[str]]
"""The members of unions by the key that tells them apart, blank for those that no one key does."""


def suggest_nearest(word: str, words: Iterable[str], least: float = _ALIKE) -> str:
    """Return ``; did you mean 'x' or 'y'?`` for the known words most like ``word``, or nothing where none is ``least``
    like it, from 0 to 1."""
    if len(word) > _LONGEST:
        return ""
    alike = {
        candidate: difflib.SequenceMatcher(None, candidate.lower(), word.lower()).ratio()
        for candidate in map(str, words)
    }
    best = max(alike.values(), default=0.0)
    if best < least:
        return ""
    nearest = [candidate for candidate, ratio in alike.items() if ratio >= best - _EQUALLY]
    return f"; did you mean {list_words(nearest[:3])}?"


def list_words(words: Sequence[str]) -> str:
    """Return ``'a', 'b' or 'c'``."""
    return " or ".join(filter(None, [", ".join(map(repr, words[:-1])), *map(repr, words[-1:])]))


def list_keys(model: type[BaseModel]) -> list[str]:
    """Return the keys a file may give for ``model``."""
    return [field.alias or name for name, field in model.model_fields.items()]


def find_model(model: type[BaseModel], steps: Sequence[str | int]) -> type[BaseModel]:
    """Return the model of the mapping that ``steps`` lead to from one of ``model``; the last one met where none is."""
    for step in steps:
        field = model.model_fields.get(str(step))
        inner = next(list_models(field.annotation), None) if field else None
        model = inner or model
    return model


def list_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """List the models in an annotation, such as that of ``tuple[Trust, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from list_models(inner)


def describe_problems(
    error: ValidationError,
    document: Document,
    known_keys: KnownKeys,
    tags: Tags,
    homes: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return one line for each place. ``homes`` has the place where a key belongs, for keys that one place has."""
    members = {member for tag in tags.values() for member in tag}
    grouped: dict[Location, list[Any]] = {}
    for error_details in error.errors(include_url=False):
        location = _drop_union_members(
            error_details, tuple(step for step in error_details["loc"] if step not in members), document.data
        )
        location += _find_named_key(error_details)
        if error_details["type"] in ("union_tag_invalid", "union_tag_not_found"):
            key = _find_discriminator(error_details)
            if not key:
                # The model whose function tells the members apart says what is wrong with the key that it reads.
                continue
            location = (*location, key)
        grouped.setdefault(location, []).append(error_details)
    grouped = {where: findings for where, findings in grouped.items() if not _is_said_below(findings, where, grouped)}
    lines = [
        f"{document.describe_position(where)}: {_describe(findings, where, known_keys, tags, homes)}"
        for where, findings in list(grouped.items())[:MAX_PROBLEMS]
    ]
    return lines + ([f"{len(grouped) - MAX_PROBLEMS} more."] if len(grouped) > MAX_PROBLEMS else [])


def _find_named_key(finding: Any) -> Location:
    """Return the first key that an error of a whole mapping names and the mapping has: its line is the one to look
    at."""
    if finding["type"] != "value_error" or not isinstance(finding["input"], Mapping):
        return ()
    named = _NAMED.findall(str(finding["ctx"]["error"]))
    return next(((key,) for key in named if key in finding["input"]), ())


def _is_said_below(findings: Sequence[Any], location: Location, locations: Iterable[Location]) -> bool:
    """Return whether only a part is wrong: of a list whose other entries are right, of a member that a union may
    have."""
    of_whole = all(
        finding["type"] in _EXPECTED or (finding["type"] == "too_short" and finding["input"]) for finding in findings
    )
    return of_whole and any(other[: len(location)] == location and other != location for other in locations)


def _find_discriminator(finding: Any) -> str:
    """Return the key that tells the members of a union apart; blank where it is a function of ours."""
    name = str(finding.get("ctx", {}).get("discriminator", "")).strip("'")
    return "" if name.endswith(")") or name.startswith("_") else name


def _drop_union_members(finding: Any, location: Location, data: Any) -> Location:
    """Return ``location`` without the members of unions, which pydantic puts behind the place of the value."""
    if finding["type"] == "invalid_key":
        return location
    missing = location[-1:] if finding["type"] == "missing" else ()
    shortened: Location = ()
    for step in location[: len(location) - len(missing)]:
        if isinstance(data, list) and isinstance(step, str):
            continue
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            continue
        shortened = (*shortened, step)
    return (*shortened, *missing) or location


def _describe(
    findings: Sequence[Any], location: Location, known_keys: KnownKeys, tags: Tags, homes: Mapping[str, str]
) -> str:
    """Describe a fault at one location; a value that no member of a union takes has a finding for each member."""
    first = next((finding for finding in findings if finding["type"] not in _EXPECTED), findings[0])
    kind, value, context = first["type"], first["input"], first.get("ctx", {})
    said = describe_value(value, first["loc"])
    if kind in _EXPECTED:
        how = (
            _suggest_quotes(findings, value)
            or _suggest_no_quotes(findings, value, said)
            or _suggest_share(findings, value)
            or _suggest_list(findings, value, said)
            or _show_example(location)
        )
        return f"{said}: expected {_join_kinds(findings)}{how}."
    if kind == "missing":
        return f"is required{_show_example(location)}."
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "extra_forbidden":
        return _describe_unknown_key(value, first["loc"], sorted(known_keys(location[:-1])), homes)
    if kind in _CHOICES:
        return _describe_choice(first, tags.get(str(location[-1]), ()))
    if isinstance(value, str) and "${" in value and "${" not in str(context.get("error")):
        return f"{said}: this key takes no reference, since its value is needed before a job runs; write the value."
    if kind == "value_error":
        return (
            _end_sentence(context["error"]) if isinstance(value, dict) else f"{said}: {_end_sentence(context['error'])}"
        )
    return f"{said}: expected {_describe_bound(kind, context, location)}."


_PLAIN: Final = {"invalid_key": "a key is text; put it in quotes."}
_CHOICES: Final = ("literal_error", "enum", "union_tag_invalid", "union_tag_not_found")


def _describe_choice(finding: Any, members: Sequence[str]) -> str:
    """Describe a fault where only certain words are allowed; ``members`` are those of a union."""
    kind, value, context = finding["type"], finding["input"], finding.get("ctx", {})
    if kind == "union_tag_not_found":
        return f"is required; expected {list_words(members)}."
    if kind == "union_tag_invalid":
        value, expected, options = context["tag"], list_words(members), list(members)
    else:
        expected = str(context["expected"])
        options = [option.strip(" '") for option in expected.replace(" or ", ", ").split(",")]
    said = describe_value(value, finding["loc"])
    guess = suggest_nearest(value, options) if isinstance(value, str) else ""
    if isinstance(value, str) and value in options and said == repr(value):
        guess = f"; write {value} without quotes."
    return f"{said} is not allowed; expected {expected}{guess or '.'}"


def _describe_unknown_key(value: Any, location: Location, keys: Sequence[str], homes: Mapping[str, str]) -> str:
    key = str(location[-1])
    home = f"; it goes into {homes[key]}." if key in homes else ""
    guess = _suggest_synonym(key, keys) or suggest_nearest(key, keys, _MUCH_ALIKE) or home or suggest_nearest(key, keys)
    said = describe_value(value, (*location, guess))
    return f"unknown key, with value {said}{guess or '; known keys: ' + ', '.join(keys) + '.'}"


def _suggest_synonym(key: str, keys: Sequence[str]) -> str:
    """Suggest the name that another destination's key has here."""
    names = next((names for names in _SAME if key in names), ())
    here = [name for name in keys if name in names]
    return f"; did you mean {list_words(here)}?" if here else ""


_SAME: Final = (
    ("bucket", "bucket_name", "s3_bucket_name", "location"),
    ("region", "aws_region", "bucket_region", "s3_bucket_region"),
    ("prefix", "path_prefix", "s3_path_prefix", "s3_bucket_path", "location"),
    ("endpoint", "endpoint_url", "s3_endpoint", "custom_s3_endpoint"),
    ("role", "role_arn", "iam_role_arn"),
    ("aws_access_key_id", "access_key_id", "awsAccessKeyId"),
    ("aws_secret_access_key", "secret_access_key", "awsSecretAccessKey"),
    ("update_aws_glue_catalog", "sync_schema_with_aws_glue_catalog"),
)
"""Keys that mean the same, of the destinations and of AWS."""


def _describe_bound(kind: str, context: Mapping[str, Any], location: Location) -> str:
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(**{key: _simplify_number(value) for key, value in context.items()})
    if kind in _COUNTS:
        least, key = _COUNTS[kind]
        count = context[key]
        return f"{least} {'one entry' if count == 1 else f'{count} entries'}"
    # The last step to a value of a list is a number.
    name = next((part for part in reversed(location) if isinstance(part, str)), "")
    return FORMS.get(name, "another value")


def _simplify_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _join_kinds(findings: Sequence[Any]) -> str:
    kinds = list(dict.fromkeys(_EXPECTED.get(finding["type"], "another value") for finding in findings))
    if "a number" in kinds and "a whole number" in kinds:
        kinds.remove("a whole number")
    return " or ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))


def _suggest_quotes(findings: Sequence[Any], value: Any) -> str:
    """Suggest quotes for text that YAML takes for a number, a truth value or a date."""
    scalar = value is not None and not isinstance(value, str | list | dict)
    return ", in quotes" if scalar and _join_kinds(findings) == "text" else ""


def _suggest_no_quotes(findings: Sequence[Any], value: Any, said: str) -> str:
    """Suggest no quotes for a number in quotes, which is text here as it is to the vendors."""
    is_number = isinstance(value, str) and said == repr(value) and _NUMBER.fullmatch(value)
    return f"; write {value} without quotes" if is_number and _join_kinds(findings) in _NUMBERS else ""


def _suggest_share(findings: Sequence[Any], value: Any) -> str:
    """Suggest the number of a percentage: shares are numbers from 0 to 1."""
    percent = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if percent is None or _join_kinds(findings) not in _NUMBERS:
        return ""
    return f", without '%': as a share from 0 to 1 it is {float(percent[1]) / 100:g}"


def _show_example(location: Location) -> str:
    name = location[-1] if location else None
    return f", such as {name}: {_EXAMPLES[name]}" if isinstance(name, str) and name in _EXAMPLES else ""


def _suggest_list(findings: Sequence[Any], value: Any, said: str) -> str:
    """Suggest the list of one entry where a list is expected; blank for other findings."""
    is_entry = isinstance(value, str) and said == repr(value) and all(e["type"] == "tuple_type" for e in findings)
    return f", such as [{value}]" if is_entry and value.isidentifier() else ""


def describe_value(value: Any, location: Location) -> str:
    """Return the value as far as it can hold no secret, as YAML has it."""
    if any(_CONFIDENTIAL.search(str(step)) for step in location):
        return "(not shown)"
    if isinstance(value, list | dict):
        return describe_kind(value) if value else describe_kind(value).replace("a ", "an empty ", 1)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value) if isinstance(value, str | int | float) else str(value)
    text = _QUERY.sub(r"\1***", _USER_INFO.sub(r"\1***@", text))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _end_sentence(text: Any) -> str:
    return str(text) if str(text).endswith(("?", ".")) else f"{text}."
