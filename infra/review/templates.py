"""The templates of a cloud assembly, and their values as a person reads them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

NAMES: Final = {
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::EMRServerless::Application": "Name",
    "AWS::Glue::Database": "Name",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Policy": "PolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::Scheduler::Schedule": "Name",
    "AWS::Scheduler::ScheduleGroup": "Name",
    "AWS::SecretsManager::Secret": "Name",
    "AWS::StepFunctions::StateMachine": "StateMachineName",
}
"""The property that holds a resource's own name."""

Properties = Mapping[str, Any]


@dataclass(frozen=True)
class Resource:
    """One resource of a template; ``name`` is its own name where it has one, else its logical id in brackets."""

    stack: str
    id: str
    type: str
    properties: Properties
    deletion: str
    name: str


@dataclass(frozen=True)
class Template:
    """One stack: its template, and whether CloudFormation refuses to delete it."""

    stack: str
    protected: bool
    body: Mapping[str, Any]

    def resources(self, kind: str | None = None) -> Iterator[Resource]:
        """All of them, or those of one type, in the template's order."""
        for logical_id, resource in self.body.get("Resources", {}).items():
            if kind in (None, resource["Type"]):
                yield self.resource(logical_id)

    def resource(self, logical_id: str) -> Resource:
        """The resource of this logical id."""
        found = self.body["Resources"][logical_id]
        kind, properties = found["Type"], found.get("Properties", {})
        name = _name(kind, properties) or f"<{logical_id}>"
        return Resource(self.stack, logical_id, kind, properties, found.get("DeletionPolicy", "Delete"), name)


def _name(kind: str, properties: Properties) -> str | None:
    """A name that is given in so many words."""
    at = properties.get("DatabaseInput", {}) if kind == "AWS::Glue::Database" else properties
    given = at.get(NAMES.get(kind, ""))
    return given if isinstance(given, str) else None


@dataclass(frozen=True)
class Templates:
    """The stacks of one assembly, and where they go: account and region, as far as they are known."""

    stacks: tuple[Template, ...]
    account: str
    region: str

    @classmethod
    def read(cls, folder: Path, names: tuple[str, ...]) -> "Templates":
        """The stacks called ``names`` out of the assembly in ``folder``."""
        artifacts = json.loads((folder / "manifest.json").read_text("utf-8"))["artifacts"]
        stacks = []
        for name in names:
            properties = artifacts[name]["properties"]
            body = json.loads((folder / properties["templateFile"]).read_text("utf-8"))
            stacks.append(Template(name, properties.get("terminationProtection", False), body))
        account, region = artifacts[names[0]]["environment"].removeprefix("aws://").split("/")
        return cls(tuple(stacks), "<account>" if account == "unknown-account" else account, region)

    @property
    def partition(self) -> str:
        """``aws``, or the partition that the region's name tells."""
        return next(
            (f"aws-{part}" for start, part in _PARTITIONS.items() if self.region.startswith(start)),
            "aws",
        )

    def resources(self, kind: str | None = None) -> Iterator[tuple[Template, Resource]]:
        """Those of every stack, each with its template."""
        for template in self.stacks:
            for resource in template.resources(kind):
                yield template, resource

    def text(self, value: Any, template: Template) -> str:
        """``value`` with its references followed as far as the templates tell; what only AWS knows in ``<>``."""
        if not isinstance(value, dict):
            return value if isinstance(value, str) else json.dumps(value)
        (function, argument), *others = value.items()
        if others:
            return json.dumps(value)
        return self._call(function, argument, template)

    def texts(self, value: Any, template: Template) -> tuple[str, ...]:
        """Of a list, or of one value that stands for a list of one."""
        return tuple(self.text(each, template) for each in (value if isinstance(value, list) else [value]))

    def _call(self, function: str, argument: Any, template: Template) -> str:
        if function == "Ref":
            return self._reference(argument, template)
        if function == "Fn::Join":
            return str(argument[0]).join(self.text(part, template) for part in argument[1])
        if function == "Fn::GetAtt":
            logical_id, attribute = argument if isinstance(argument, list) else argument.split(".", 1)
            return self._attribute(template.resource(logical_id), attribute)
        if function == "Fn::Sub" and isinstance(argument, str):
            return argument.replace("${AWS::Partition}", self.partition).replace("${AWS::AccountId}", self.account)
        if function == "Fn::ImportValue":
            return self._exports.get(self.text(argument, template), f"<{argument}>")
        if function == "Fn::GetStackOutput":
            return self._output(argument)
        return f"<{function} {json.dumps(argument)}>"

    def _reference(self, name: str, template: Template) -> str:
        known = {
            "AWS::Partition": self.partition,
            "AWS::AccountId": self.account,
            "AWS::Region": self.region,
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": template.stack,
        }
        if name in known:
            return known[name]
        if parameter := template.body.get("Parameters", {}).get(name):
            of_ssm = parameter["Type"].startswith("AWS::SSM::Parameter::Value")
            return f"<ssm:{parameter['Default']}>" if of_ssm else f"<parameter {name}>"
        resource = template.resource(name)
        return self._attribute(resource, "Arn") if resource.type in _REF_IS_ARN else resource.name

    def _attribute(self, resource: Resource, attribute: str) -> str:
        if attribute != "Arn":
            return f"<{resource.id}.{attribute}>"
        if resource.type == "AWS::S3::Bucket":
            return f"arn:{self.partition}:s3:::{resource.name}"
        if resource.type == "AWS::IAM::Role":
            path = resource.properties.get("Path", "/")
            return f"arn:{self.partition}:iam::{self.account}:role{path}{resource.name}"
        return f"<{resource.name.strip('<>')}>"

    @cached_property
    def _exports(self) -> dict[str, str]:
        return {
            self.text(output["Export"]["Name"], template): self.text(output["Value"], template)
            for template in self.stacks
            for output in template.body.get("Outputs", {}).values()
            if "Export" in output
        }

    def _output(self, argument: Mapping[str, Any]) -> str:
        name, output = str(argument.get("StackName")), str(argument.get("OutputName"))
        for template in self.stacks:
            if template.stack == name.rpartition("/")[2] and output in template.body.get("Outputs", {}):
                return self.text(template.body["Outputs"][output]["Value"], template)
        return f"<{name}.{output}>"


_PARTITIONS: Final = {"cn-": "cn", "us-gov-": "us-gov", "us-isob-": "iso-b", "us-iso-": "iso", "eusc-": "eusc"}
_REF_IS_ARN: Final = {"AWS::IAM::ManagedPolicy", "AWS::SNS::Topic", "AWS::StepFunctions::StateMachine"}
