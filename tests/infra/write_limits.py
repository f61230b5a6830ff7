"""Write infra/review/limits.json anew: what CloudFormation's and botocore's models say of lengths, counts and patterns.

python -m tests.infra.write_limits
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import botocore.session
import cfnlint

from infra.review.limits import JOB_RUN, PATH

TYPES: Final = (
    "Budgets::Budget", "CloudWatch::Alarm", "CloudWatch::Dashboard", "EMRServerless::Application", "Events::Rule",
    "Glue::Database", "IAM::ManagedPolicy", "IAM::Policy", "IAM::Role", "IAM::User", "KMS::Key",
    "LakeFormation::PrincipalPermissions", "LakeFormation::Tag", "LakeFormation::TagAssociation", "Lambda::Function",
    "Logs::LogGroup", "S3::Bucket", "SNS::Subscription", "SNS::Topic", "SQS::Queue", "Scheduler::Schedule",
    "Scheduler::ScheduleGroup", "SecretsManager::Secret", "StepFunctions::StateMachine",
)  # fmt: skip
"""The types whose properties hold values of lake.yaml."""
SCHEMAS: Final = Path(str(cfnlint.__file__)).parent / "data" / "schemas"
CLASSES: Final = {r"\p{L}": r"\w", r"\p{N}": r"\d", r"\p{Z}": r"\s"}
"""Classes of characters that Python's expressions have by other names."""
Limits = dict[str, Any]


def make_limits() -> dict[str, dict[str, Limits]]:
    """By type and path of a property, the limits of its value."""
    named = json.loads((SCHEMAS / "providers" / "us-east-1.json").read_text("utf-8"))
    made = {f"AWS::{kind}": _read_schema(named[f"AWS::{kind}"]) for kind in TYPES}
    model = botocore.session.get_session().get_service_model("emr-serverless")
    made[JOB_RUN] = dict(_walk_shape(model.operation_model("StartJobRun").input_shape, ""))
    return {kind: dict(sorted(limits.items())) for kind, limits in sorted(made.items()) if limits}


def _read_schema(name: str) -> dict[str, Limits]:
    schema = json.loads((SCHEMAS / "resources" / f"{name}.json").read_text("utf-8"))
    read_only = {path.removeprefix("/properties/") for path in schema.get("readOnlyProperties", ())}
    return {
        path: limits
        for path, limits in _walk_schema({"properties": schema["properties"]}, schema.get("definitions", {}), "", 0)
        if path not in read_only
    }


def _walk_schema(
    node: Mapping[str, Any], definitions: Mapping[str, Any], path: str, depth: int
) -> Iterator[tuple[str, Limits]]:
    if depth > 8:
        return
    if "$ref" in node:
        yield from _walk_schema(definitions[node["$ref"].rpartition("/")[2]], definitions, path, depth + 1)
        return
    if limits := _name_limits(node):
        yield path, limits
    for name, below in node.get("properties", {}).items():
        yield from _walk_schema(below, definitions, f"{path}/{name}" if path else name, depth + 1)
    if isinstance(node.get("items"), Mapping):
        yield from _walk_schema(node["items"], definitions, f"{path}/*", depth + 1)


def _walk_shape(shape: Any, path: str) -> Iterator[tuple[str, Limits]]:
    found = shape.metadata
    if limits := _name_limits(
        {"type": shape.type_name, "pattern": found.get("pattern")}
        | {f"{end}{'Items' if shape.type_name in ('list', 'map') else 'Length'}": found[end]
           for end in ("min", "max") if end in found}
    ):  # fmt: skip
        yield path, limits
    if shape.type_name == "structure":
        for name, below in shape.members.items():
            upper = name[0].upper() + name[1:]
            yield from _walk_shape(below, f"{path}/{upper}" if path else upper)
    elif shape.type_name == "list" and shape.member.type_name != "structure":
        yield from _walk_shape(shape.member, f"{path}/*")
    elif shape.type_name == "map":
        yield from _walk_shape(shape.key, f"{path}/{PATH}")
        yield from _walk_shape(shape.value, f"{path}/*")


def _name_limits(node: Mapping[str, Any]) -> Limits:
    names = {"minLength": "shortest", "maxLength": "longest", "minItems": "fewest", "maxItems": "most"}
    limits = {new: node[old] for old, new in names.items() if node.get(old) not in (None, 0)}
    pattern = node.get("pattern")
    if pattern:
        for theirs, ours in CLASSES.items():
            pattern = pattern.replace(theirs, ours)
        try:
            re.compile(pattern)
        except re.error:
            return limits
        limits["pattern"] = pattern
    return limits


if __name__ == "__main__":
    text = json.dumps(make_limits(), indent=1, sort_keys=True, ensure_ascii=True)
    Path("infra/review/limits.json").write_text(f"{text}\n", "utf-8")
