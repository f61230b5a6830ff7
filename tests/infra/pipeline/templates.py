"""What tests ask of a template."""

import json

from aws_cdk.assertions import Template


def properties(template, kind):
    return [each.get("Properties", {}) for each in template["Resources"].values() if each["Type"] == f"AWS::{kind}"]


def has(template, kind, **expected):
    Template.from_json(template).has_resource_properties(f"AWS::{kind}", expected)


def statements(template):
    """Of every identity policy, by Sid."""
    documents = [
        each["PolicyDocument"] for kind in ("Policy", "ManagedPolicy") for each in properties(template, f"IAM::{kind}")
    ]
    return {each["Sid"]: each for document in documents for each in document["Statement"]}


def loads(template):
    """The state machine of the loads."""
    machines = template["Resources"].items()
    (machine,) = (each["Properties"] for name, each in machines if name.startswith("LoadsStateMachine"))
    return machine


def job_run(template):
    """The state that starts the job run."""
    return find_states(template)["RunJob"]


def find_states(template):
    """The states of the loads by name, references left out."""
    machine = loads(template)
    _, parts = machine["DefinitionString"]["Fn::Join"]
    text = "".join(part if isinstance(part, str) else "_" for part in parts)
    return json.loads(text)["States"]
