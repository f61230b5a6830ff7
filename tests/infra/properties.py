"""Write aws_properties.csv anew: every property of every type that the templates use, with what AWS's page says.

python -m tests.infra.properties

A policy, a definition of a state machine and the body of a dashboard are one value each: what is in them has its rows
in aws_claims.csv. If a property is wrong, the stack stops at the resource and is rolled back, and its event names the
property: take the key of lake.yaml away that asks for it. ``scripts/prove`` asks for each that its file uses.

A property is documented if CloudFormation's own schema of its type has it, in cfn-lint's copy; its passage and link are
those that the CDK's classes carry from the type's page.
"""

import csv
import importlib
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import cfnlint

from tests.infra.checks.test_examples import DEPLOYED
from tests.infra.test_deployer import list_contents, synthesize

FILE: Final = Path(__file__).with_name("aws_properties.csv")
HEAD: Final = ("type", "property", "passage", "how_sure", "link")
SCHEMAS: Final = Path(str(cfnlint.__file__)).parent / "data" / "schemas"
REGION: Final = "us-east-1"
LONGEST: Final = 140
"""Characters of a passage."""
CUSTOM: Final = (
    "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/"
    "aws-resource-cloudformation-customresource.html"
)
FORWARDED: Final = "Further properties go to the function, which is the CDK's own."
Used = tuple[str, str]
"""A type and a path in it, such as ``BucketEncryption.ServerSideEncryptionConfiguration``."""


@dataclass(frozen=True)
class Row:
    """A property with the first sentence of its page; without a link no model of AWS's has it."""

    passage: str
    link: str

    @property
    def cells(self) -> tuple[str, str, str]:
        """The passage, how sure the property is, in a word of the claims, and the link."""
        if not self.link:
            return "no schema has it", "unproven", ""
        return self.passage or "no passage", "documented" if self.passage else "observed", self.link


def list_used(templates: Iterable[Mapping[str, Any]]) -> set[Used]:
    """List each property of each resource."""
    return {
        (resource["Type"], path)
        for template in templates
        for resource in template["Resources"].values()
        if resource["Type"] != "AWS::CDK::Metadata"
        for path in _walk(resource)
    }


def _walk(resource: Mapping[str, Any]) -> Iterator[str]:
    schema = read_schema(resource["Type"])
    return _list_paths(resource.get("Properties", {}), schema, schema, "")


def make_row(kind: str, path: str) -> Row:
    """Make the row of a property."""
    if kind.startswith("Custom::"):
        is_token = path == "ServiceToken"
        return Row("The service token, such as an ARN of a Lambda function." if is_token else FORWARDED, CUSTOM)
    schema, holder = read_schema(kind), ""
    node: Mapping[str, Any] = schema
    for name in path.split("."):
        node = node.get("properties", {}).get(name)
        if node is None:
            return Row("", "")
        described = _read_passage(kind, holder, name) or Row(_shorten(node.get("description", "")), _link(kind))
        node, holder = _follow(schema, node)
    return described


def read_rows() -> dict[Used, tuple[str, str, str]]:
    """Read the cells of each property of the file."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {(kind, path): (passage, how_sure, link) for kind, path, passage, how_sure, link in rows}


def write_rows(used: set[Used]) -> None:
    """Write the file of these properties."""
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows((kind, path, *make_row(kind, path).cells) for kind, path in sorted(used))


@cache
def read_schema(kind: str) -> Mapping[str, Any]:
    """Read CloudFormation's schema of a type; of a custom resource there is none."""
    if kind.startswith("Custom::"):
        return {"properties": {}}
    name = json.loads((SCHEMAS / "providers" / f"{REGION}.json").read_text("utf-8"))[kind]
    schema: Mapping[str, Any] = json.loads((SCHEMAS / "resources" / f"{name}.json").read_text("utf-8"))
    return schema


def _list_paths(value: Any, schema: Mapping[str, Any], node: Mapping[str, Any], path: str) -> Iterator[str]:
    """List the paths below a value; a reference is one value, and so is what the schema has no properties for."""
    if isinstance(value, list):
        for item in value:
            yield from _list_paths(item, schema, node, path)
    elif isinstance(value, Mapping) and "properties" in node and not _is_reference(value):
        for name, below in value.items():
            here = f"{path}.{name}" if path else name
            yield here
            yield from _list_paths(below, schema, _follow(schema, node["properties"].get(name, {}))[0], here)


def _is_reference(value: Mapping[str, Any]) -> bool:
    return any(name == "Ref" or name.startswith("Fn::") for name in value)


def _follow(schema: Mapping[str, Any], node: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Follow references and lists to the node that has properties, and name its definition."""
    holder = ""
    while "$ref" in node or isinstance(node.get("items"), Mapping):
        if "$ref" in node:
            holder = str(node["$ref"]).rpartition("/")[2]
            node = schema["definitions"][holder]
        else:
            node = node["items"]
    return node, holder


def _read_passage(kind: str, holder: str, name: str) -> Row | None:
    """Read a property of the CDK's class of a type, or of one of its definitions; None if it has no such class."""
    _, service, resource = kind.split("::")
    module = importlib.import_module(f"aws_cdk.aws_{service.lower()}")
    owner = getattr(module, f"Cfn{resource}Props") if not holder else getattr(
        getattr(module, f"Cfn{resource}"), f"{holder}Property", None
    )  # fmt: skip
    named = vars(owner).items() if owner else ()
    attribute = next((value for key, value in named if key.replace("_", "") == name.lower()), None)
    text = str(attribute.__doc__ or "") if attribute else ""
    link = re.search(r":see: (\S+)", text)
    if not link:
        return None
    return Row(_shorten(text.partition(":see:")[0].split("\n\n")[0]), link[1].replace("http:", "https:", 1))


def _link(kind: str) -> str:
    _, service, resource = kind.lower().split("::")
    return f"https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-{service}-{resource}.html"


def _shorten(text: str) -> str:
    """Shorten a passage to its first sentence, without links and lines."""
    plain = re.sub(r"`([^`<]+) <[^>]+>`_|\[([^\]]+)\]\([^)]+\)", lambda link: link[1] or link[2], text)
    plain = re.sub(r"[`*|<>]", "", " ".join(plain.split()))
    sentence = re.split(r"(?<=[a-z)])\. ", plain)[0].rstrip(".")
    return f"{sentence if len(sentence) <= LONGEST else sentence[:LONGEST].rpartition(' ')[0] + ' ...'}".strip()


def main() -> None:
    """Synthesise every example and generated file, and write the file of what they use."""
    with tempfile.TemporaryDirectory() as folder:
        deployed = synthesize(Path(folder), list_contents(DEPLOYED, range(60)))
    write_rows(list_used(template for file in deployed for template in file.templates.values()))


if __name__ == "__main__":
    main()
