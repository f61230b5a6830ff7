"""The ledger has a row for every principal, condition key, integration and property that the templates use.

docs/aws-claims.md is written by hand; docs/aws-properties.md by ``tests.infra.properties``.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.infra import properties
from tests.infra.test_deployer import Deployed, deployed
from tests.support.sample import IS_NIGHTLY

__all__ = ["deployed"]

pytestmark = pytest.mark.synth

PAGE = (Path(__file__).parents[2] / "docs" / "aws-claims.md").read_text("utf-8")
KINDS = {"example", "documented", "inferred", "observed", "unproven"}
"""How sure a claim is, by the first word of its cell."""


def read_rows(title: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by what their first cell has in backquotes."""
    section = PAGE.split(f"{title}\n", 1)[1].split("\n#", 1)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {name: [cell.strip() for cell in row] for row in rows for name in re.findall(r"`([^`]+)`", row[0])}


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
    assert used == set(read_rows("### Principals of services"))


def test_condition_keys(deployed: list[Deployed]) -> None:
    keys = {
        re.sub(r"^.*:(aud|sub)$", r"\1", re.sub(r"(aws:[A-Za-z]+/).*", r"\1", key))
        for each in list_all(deployed)
        for operator in each.get("Condition", {}).values()
        for key in operator
    }
    assert keys == set(read_rows("### Condition keys"))


def test_integrations(deployed: list[Deployed]) -> None:
    text = json.dumps([file.templates for file in deployed])
    used = set(re.findall(r":states:::((?:aws-sdk:)?[a-zA-Z0-9-]+:[a-zA-Z.]+)", text))
    assert used == set(read_rows("### Integrations of Step Functions"))


def test_properties(deployed: list[Deployed]) -> None:
    """The page has what all generated files use, of which scripts/nightly makes every one."""
    used = properties.list_used(template for file in deployed for template in file.templates.values())
    rows = set(properties.read_page())
    assert sorted(used - rows) == []
    assert len(used) >= 280
    assert not IS_NIGHTLY or used == rows


def test_rows_of_properties_are_those_of_the_models() -> None:
    rows = properties.read_page()
    assert {used: cells for used, cells in rows.items() if properties.make_row(*used).cells != cells} == {}
    assert properties.make_row("AWS::S3::Bucket", "BucketNaem").cells.endswith("unproven")


@pytest.mark.parametrize(
    "title", ["### Principals of services", "### Condition keys", "### Integrations of Step Functions"]
)
def test_rows_say_how_sure_they_are(title: str) -> None:
    rows = read_rows(title)
    assert {name: row[2] for name, row in rows.items() if row[2].split(",")[0].split(";")[0] not in KINDS} == {}
    assert [name for name, row in rows.items() if not row[1].startswith("[") or len(row) != 4] == []


def test_unproven_claims_are_counted() -> None:
    """Each is answered by the first steps of ``scripts/prove``; a further one is a decision."""
    unproven = [line for line in PAGE.splitlines() if line.startswith("|") and re.search(r"\bunproven\b", line)]
    assert len(unproven) == int(re.search(r"(\d+) rows are unproven", PAGE)[1])  # type: ignore[index]
    rows = properties.read_page().values()
    counted = f"{sum(cells.endswith('unproven') for cells in rows)} of {len(rows)} rows are unproven"
    assert counted in " ".join(properties.PAGE.read_text("utf-8").split())
