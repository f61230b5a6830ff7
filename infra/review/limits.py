"""Hold the values of the templates to the models of CloudFormation and EMR Serverless, and name the keys of lake.yaml.

``limits.json`` has what the models say; ``tests/infra/write_limits.py`` writes it anew.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from infra.review.templates import Resource, Template, Templates
from infra.settings import Settings
from lakewriter.deployable.lake_file import walk_scalars

JOB_RUN: Final = "emr-serverless:startJobRun"
"""The request that starts a job run, beside the types of CloudFormation."""
PATH: Final = "{key}"
"""In a path of limits, the keys of a map."""
_LONGEST_ROLE: Final = 64
"""Characters of the longest name of a role."""
Named = tuple[str, Any]


@cache
def read_limits() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Read the limits by type, or request, and path of a property."""
    limits: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(
        Path(__file__).with_name("limits.json").read_text("utf-8")
    )
    return limits


def check_templates(folder: Path, settings: Settings) -> Iterator[str]:
    """List each value of a stage's templates that AWS would refuse, by the key of lake.yaml that made it."""
    templates = Templates.read(folder, settings.stack_names)
    keys = _list_keys(settings)
    reported: set[str] = set()
    for template, resource in templates.list_resources():
        for kind, path, value in _list_values(templates, template, resource):
            problem = describe_violation(read_limits().get(kind, {}).get(path, {}), value)
            key = _find_key(keys, value) if problem else None
            if problem and key and key not in reported:
                reported.add(key)
                yield f"{key}: {problem}, in {kind} {path.replace('/*', '').replace('/', '.')}."


def describe_violation(limits: Mapping[str, Any], value: Any) -> str | None:
    """Say what is expected of a value in place of what it is; None for one that is within the limits."""
    if isinstance(value, str):
        if len(value) > limits.get("longest", len(value)):
            return f"{value!r} has {len(value)} characters; expected at most {limits['longest']}"
        if len(value) < limits.get("shortest", 0):
            return f"{value!r} has {len(value)} characters; expected at least {limits['shortest']}"
        pattern = limits.get("pattern")
        if pattern and "<" not in value and not re.search(_anchor(pattern), value):
            return f"{value!r} is refused; expected a text that matches {pattern}"
    if isinstance(value, list) and len(value) > limits.get("most", len(value)):
        return f"got {len(value)}; expected at most {limits['most']}"
    return None


def _anchor(pattern: str) -> str:
    """Make a pattern one of the whole text, as botocore means it; JSON Schema's have anchors of their own."""
    return pattern if pattern.startswith("^") else f"^(?:{pattern})$"


def _list_values(templates: Templates, template: Template, resource: Resource) -> Iterator[tuple[str, str, Any]]:
    for path, value in _walk(resource.properties, ""):
        resolved = _resolve(templates, template, value)
        yield resource.type, path, resolved
        if path == "DefinitionString" and isinstance(resolved, str):
            for run in _find_job_runs(resolved):
                yield from ((JOB_RUN, below, given) for below, given in _walk(run, ""))


def _walk(value: Any, path: str) -> Iterator[Named]:
    """Yield each value with its path, lists and keys of maps included; a reference is a value."""
    if isinstance(value, list):
        yield path, value
        for item in value:
            yield from _walk(item, f"{path}/*")
    elif isinstance(value, Mapping) and not any(key == "Ref" or key.startswith("Fn::") for key in value):
        for key, below in value.items():
            yield f"{path}/{PATH}", key
            yield from _walk(below, f"{path}/{key}" if path else key)
            if not isinstance(below, Mapping | list):
                yield f"{path}/*", below
    else:
        yield path, value


def _resolve(templates: Templates, template: Template, value: Any) -> Any:
    """Resolve a reference; the ARN of a role with the longest name that CloudFormation may give it."""
    match value:
        case {"Fn::GetAtt": [logical_id, "Arn"]} if template.body["Resources"][logical_id]["Type"] == "AWS::IAM::Role":
            path = template.find_resource(logical_id).properties.get("Path", "/")
            return f"arn:{templates.partition}:iam::{'0' * 12}:role{path}{'<' * _LONGEST_ROLE}"
        case Mapping():
            return templates.resolve(value, template)
    return value


def _find_job_runs(definition: str) -> Iterator[Mapping[str, Any]]:
    states = json.loads(definition).get("States", {})
    return (
        state["Parameters"] for state in states.values() if str(state.get("Resource", "")).endswith(f"{JOB_RUN}.sync")
    )


def _list_keys(settings: Settings) -> list[Named]:
    """List the values of the file with their keys, the longest first; a tag's key is a value too."""
    access, deployment = settings.spec.access, settings.deployment
    given = list(walk_scalars(deployment.model_dump(mode="json", exclude={"stages"}), "deployment"))
    given += [(f"deployment.tags.{tag}", tag) for tag in deployment.tags]
    given += [("deployment.tags", ""), ("pipeline", settings.spec.pipeline)]
    given += [(f"destination.{access.key_names.bucket}", access.bucket)]
    texts = [(key, str(value)) for key, value in given if value is not None and not isinstance(value, bool)]
    return sorted(texts, key=lambda pair: len(pair[1]), reverse=True)


def _find_key(keys: list[Named], value: Any) -> str | None:
    """Find the key whose value is the value, or a part of it; None for a value that no key made."""
    text = value if isinstance(value, str) else ""
    same = next((key for key, given in keys if given == text and isinstance(value, str)), None)
    return same or next((key for key, given in keys if len(given) > 2 and given in text), None)
