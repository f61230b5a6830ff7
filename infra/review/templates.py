"""Read the templates of a cloud assembly, and resolve their references to readable text."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from lakewriter.policy.arns import find_partition, find_url_suffix

NAMES: Final = {
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::EMRServerless::Application": "Name",
    "AWS::Glue::Database": "Name",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Policy": "PolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
    "AWS::LakeFormation::Tag": "TagKey",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::S3Tables::Namespace": "Namespace",
    "AWS::S3Tables::TableBucket": "TableBucketName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::Scheduler::Schedule": "Name",
    "AWS::Scheduler::ScheduleGroup": "Name",
    "AWS::SecretsManager::Secret": "Name",
    "AWS::StepFunctions::StateMachine": "StateMachineName",
}
"""Maps a type to the property that holds the resource's name."""

Properties = Mapping[str, Any]


@dataclass(frozen=True)
class Resource:
    """One resource of a template; ``name`` is its name if the template sets one, else ``<logical id>``."""

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

    def list_resources(self, kind: str | None = None) -> Iterator[Resource]:
        """List all resources, or those of one type, in the template's order."""
        for logical_id, resource in self.body.get("Resources", {}).items():
            if kind in (None, resource["Type"]):
                yield self.find_resource(logical_id)

    def find_resource(self, logical_id: str) -> Resource:
        """Find the resource by its logical id."""
        resource = self.body["Resources"][logical_id]
        kind, properties = resource["Type"], resource.get("Properties", {})
        name = _find_name(kind, properties) or f"<{logical_id}>"
        return Resource(self.stack, logical_id, kind, properties, resource.get("DeletionPolicy", "Delete"), name)


def _find_name(kind: str, properties: Properties) -> str | None:
    """Find the name that the template sets as plain text."""
    at = properties.get("DatabaseInput", {}) if kind == "AWS::Glue::Database" else properties
    given = at.get(NAMES.get(kind, ""))
    return given if isinstance(given, str) else None


def find_stacks(folder: Path) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """Find the artifact of each stack of an assembly by the stack's name, with the folder that its files are in.

    A ``cdk.Stage`` is an assembly within the app's.
    """
    stacks: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for name, artifact in json.loads((folder / "manifest.json").read_text("utf-8"))["artifacts"].items():
        properties = artifact.get("properties", {})
        if artifact["type"] == "aws:cloudformation:stack":
            stacks.setdefault(properties.get("stackName", name), (folder, artifact))
        elif artifact["type"] == "cdk:cloud-assembly":
            stacks = find_stacks(folder / properties["directoryName"]) | stacks
    return stacks


@dataclass(frozen=True)
class Templates:
    """The stacks of one assembly, with their account and region if known."""

    stacks: tuple[Template, ...]
    account: str
    region: str

    @classmethod
    def read(cls, folder: Path, names: tuple[str, ...]) -> "Templates":
        """Read the stacks called ``names`` from the assembly in ``folder``."""
        artifacts = find_stacks(folder)
        stacks = []
        for name in names:
            beside, artifact = artifacts[name]
            properties = artifact["properties"]
            body = json.loads((beside / properties["templateFile"]).read_text("utf-8"))
            stacks.append(Template(name, properties.get("terminationProtection", False), body))
        account, region = artifacts[names[0]][1]["environment"].removeprefix("aws://").split("/")
        return cls(tuple(stacks), "<account>" if account == "unknown-account" else account, region)

    @property
    def partition(self) -> str:
        """The partition of the region; ``aws`` for most."""
        return find_partition(self.region)

    def list_resources(self, kind: str | None = None) -> Iterator[tuple[Template, Resource]]:
        """List the resources of every stack, each with its template."""
        for template in self.stacks:
            for resource in template.list_resources(kind):
                yield template, resource

    def resolve(self, value: Any, template: Template) -> str:
        """Resolve the references in ``value``; what only AWS knows is rendered in ``<>``."""
        if not isinstance(value, dict):
            return value if isinstance(value, str) else json.dumps(value)
        (function, argument), *others = value.items()
        if others:
            return json.dumps(value)
        return self._resolve_function(function, argument, template)

    def resolve_all(self, value: Any, template: Template) -> tuple[str, ...]:
        """Resolve each value of a list; a single value counts as a list of one."""
        return tuple(self.resolve(item, template) for item in (value if isinstance(value, list) else [value]))

    def _resolve_function(self, function: str, argument: Any, template: Template) -> str:
        if function == "Ref":
            return self._resolve_reference(argument, template)
        if function == "Fn::Join":
            return str(argument[0]).join(self.resolve(part, template) for part in argument[1])
        if function == "Fn::GetAtt":
            logical_id, attribute = argument if isinstance(argument, list) else argument.split(".", 1)
            return self._resolve_attribute(template.find_resource(logical_id), attribute)
        if function == "Fn::Sub" and isinstance(argument, str):
            return argument.replace("${AWS::Partition}", self.partition).replace("${AWS::AccountId}", self.account)
        if function == "Fn::ImportValue":
            return self._exports.get(self.resolve(argument, template), f"<{argument}>")
        if function == "Fn::GetStackOutput":
            return self._resolve_output(argument)
        return f"<{function} {json.dumps(argument)}>"

    def _resolve_reference(self, name: str, template: Template) -> str:
        pseudo_parameters = {
            "AWS::Partition": self.partition,
            "AWS::AccountId": self.account,
            "AWS::Region": self.region,
            "AWS::URLSuffix": find_url_suffix(self.region),
            "AWS::StackName": template.stack,
            "AWS::StackId": "<AWS::StackId>",
        }
        if name in pseudo_parameters:
            return pseudo_parameters[name]
        if parameter := template.body.get("Parameters", {}).get(name):
            of_ssm = parameter["Type"].startswith("AWS::SSM::Parameter::Value")
            return f"<ssm:{parameter['Default']}>" if of_ssm else f"<parameter {name}>"
        resource = template.find_resource(name)
        return self._resolve_attribute(resource, "Arn") if resource.type in _REF_IS_ARN else resource.name

    def _resolve_attribute(self, resource: Resource, attribute: str) -> str:
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
            self.resolve(output["Export"]["Name"], template): self.resolve(output["Value"], template)
            for template in self.stacks
            for output in template.body.get("Outputs", {}).values()
            if "Export" in output
        }

    def _resolve_output(self, argument: Mapping[str, Any]) -> str:
        name, output = str(argument.get("StackName")), str(argument.get("OutputName"))
        for template in self.stacks:
            if template.stack == name.rpartition("/")[2] and output in template.body.get("Outputs", {}):
                return self.resolve(template.body["Outputs"][output]["Value"], template)
        return f"<{name}.{output}>"


_REF_IS_ARN: Final = {"AWS::IAM::ManagedPolicy", "AWS::SNS::Topic", "AWS::StepFunctions::StateMachine"}
