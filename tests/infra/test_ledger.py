"""The claims have a row for every principal, condition key, integration and property that the templates use.

aws_claims.csv is written by hand; aws_properties.csv by ``tests.infra.properties``.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.infra import properties
from tests.infra.claims import KINDS, read_by_name, read_claims
from tests.infra.test_deployer import Deployed, deployed
from tests.support.sample import IS_NIGHTLY

__all__ = ["deployed"]

pytestmark = pytest.mark.synth


def list_statements(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every statement of a policy, wherever it stands in a template."""
    if isinstance(value, list):
        for each in value:
            yield from list_statements(each)
    if isinstance(value, Mapping):
        if "Effect" in value:
            yield value
        for below in value.values():
            yield from list_statements(below)


def list_all(deployed: list[Deployed]) -> list[Mapping[str, Any]]:
    return [
        statement
        for file in deployed
        for template in file.templates.values()
        for statement in list_statements(template)
    ]


def test_principals(deployed: list[Deployed]) -> None:
    named = [each.get("Principal") for each in list_all(deployed)]
    services = [each["Service"] for each in named if isinstance(each, Mapping) and "Service" in each]
    texts = {text for each in services for text in (each if isinstance(each, list) else [each])}
    used = {re.sub(r"^logs\..*", "logs", text.removesuffix(".amazonaws.com")) for text in map(str, texts)}
    assert used == set(read_by_name("Principals of services"))


def test_condition_keys(deployed: list[Deployed]) -> None:
    keys = {
        re.sub(r"^.*:(aud|sub)$", r"\1", re.sub(r"(aws:[A-Za-z]+/).*", r"\1", key))
        for each in list_all(deployed)
        for operator in each.get("Condition", {}).values()
        for key in operator
    }
    assert keys == set(read_by_name("Condition keys"))


def test_integrations(deployed: list[Deployed]) -> None:
    text = json.dumps([file.templates for file in deployed])
    used = set(re.findall(r":states:::((?:aws-sdk:)?[a-zA-Z0-9-]+:[a-zA-Z.]+)", text))
    assert used == set(read_by_name("Integrations of Step Functions"))


def test_properties(deployed: list[Deployed]) -> None:
    """The file has what all generated files use, of which scripts/nightly makes every one."""
    used = properties.list_used(template for file in deployed for template in file.templates.values())
    rows = set(properties.read_rows())
    assert sorted(used - rows) == []
    assert len(used) >= 280
    assert not IS_NIGHTLY or used == rows


def test_rows_of_properties_are_those_of_the_models() -> None:
    rows = properties.read_rows()
    assert {used: cells for used, cells in rows.items() if properties.make_row(*used).cells != cells} == {}
    assert properties.make_row("AWS::S3::Bucket", "BucketNaem").cells[1] == "unproven"


@pytest.mark.parametrize("title", ["Principals of services", "Condition keys", "Integrations of Step Functions"])
def test_rows_say_how_sure_they_are(title: str) -> None:
    rows = read_claims(title)
    assert [row.claim for row in rows if row.kind not in KINDS] == []
    assert [row.claim for row in rows if not row.page.startswith("[") or not row.if_wrong] == []


UNPROVEN = 5
"""Each is answered by the first steps of ``scripts/prove``; a further one is a decision."""


def test_unproven_claims_are_counted() -> None:
    assert len([row for row in read_claims() if row.is_unproven]) == UNPROVEN
    assert [used for used, cells in properties.read_rows().items() if cells[1] == "unproven"] == []
