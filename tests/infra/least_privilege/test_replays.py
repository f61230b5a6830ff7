"""Each vendor's documented calls under the role or user that its stack makes, and what none of them may do."""

import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from infra.review.templates import Template, Templates
from tests.infra.destination.conftest import Synthesise, synthesise
from tests.infra.least_privilege.replays import (
    ACCOUNT,
    LAKES,
    REPLAYS,
    ROLES,
    WAYS_OUT,
    Call,
    find_lake,
    list_attempts,
    without_none,
)
from tests.infra.least_privilege.test_attempts import ATTEMPTS, TRUST
from tests.support.iam import Decision, Policies, Request, simulate

__all__ = ["synthesise"]

pytestmark = pytest.mark.synth


def resolve(value: Any, templates: Templates, template: Template) -> Any:
    """A policy document with its references followed."""
    if isinstance(value, list):
        return [resolve(each, templates, template) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::")):
        return templates.resolve(value, template)
    return {key: resolve(each, templates, template) for key, each in value.items()}


@pytest.fixture(scope="module")
def policies_of(synthesise: Synthesise) -> Callable[[str], Policies]:
    """By replay: what is attached to its role or user, and the bucket's own policy."""

    @functools.cache
    def template_of(name: str) -> Template:
        found = synthesise(without_none(LAKES[name]))
        return Template(name, protected=True, body=found.template)

    def read(replay: str) -> Policies:
        template = template_of(find_lake(replay))
        templates = Templates((template,), ACCOUNT, "us-east-1")
        identity = {}
        for policy in template.list_resources("AWS::IAM::ManagedPolicy"):
            holders = [each["Ref"] for each in policy.properties.get("Roles", policy.properties.get("Users", []))]
            if ROLES[replay] in holders:
                identity[policy.id] = resolve(policy.properties["PolicyDocument"], templates, template)
        (bucket,) = [each for each in template.list_resources("AWS::S3::BucketPolicy") if each.id == "BucketPolicy"]
        return Policies(identity, resolve(bucket.properties["PolicyDocument"], templates, template))

    return read


def decide(policies: Policies, calls: list[Call]) -> list[Decision]:
    """The bucket's policy decides on calls of the bucket only."""
    alone = Policies(policies.identity)
    requests = [Request(action, resource, context) for action, resource, context in calls]
    under = [policies if resource.split("/")[0].endswith(":::acme-lake") else alone for _, resource, _ in calls]
    return simulate(requests, under)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("replay", REPLAYS)
def test_documented_calls_are_allowed(policies_of: Callable[[str], Policies], replay: str) -> None:
    calls = REPLAYS[replay]
    found = decide(policies_of(replay), calls)
    assert [call for call, decision in zip(calls, found, strict=True) if not decision.allowed] == []


@pytest.mark.parametrize("replay", REPLAYS)
def test_what_is_not_the_vendors_is_refused(policies_of: Callable[[str], Policies], replay: str) -> None:
    calls = list(list_attempts(replay))
    found = decide(policies_of(replay), calls)
    assert [call for call, decision in zip(calls, found, strict=True) if decision.allowed] == []


@pytest.mark.parametrize(("replay", "call", "way_out"), WAYS_OUT)
def test_what_a_document_lists_and_is_refused(
    policies_of: Callable[[str], Policies], replay: str, call: Call, way_out: str
) -> None:
    (found,) = decide(policies_of(replay), [call])
    assert (found.allowed, bool(way_out)) == (False, True)


def test_how_many_attempts_there_are() -> None:
    rows = [*TRUST, *(row for of_role in ATTEMPTS.values() for row in of_role)]
    attempts = [(replay, json.dumps(call)) for replay in REPLAYS for call in list_attempts(replay)]
    replayed = [(replay, json.dumps(call)) for replay, calls in REPLAYS.items() for call in calls]
    assert len(rows) + len(set(attempts)) >= 300
    assert len(set(replayed)) >= 150
