"""A change of key, prefix, bucket or region is refused while it would leave data behind without a word."""

from pathlib import Path
from typing import Any

import pytest

from infra.review import list_changes
from lakewriter.errors import SpecInvalidError
from tests.infra.review.conftest import Synth

pytestmark = pytest.mark.synth

FIRST = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
SECOND = FIRST.replace("1111-2222", "9999-2222")
MADE = {"encryption": "SSE-KMS"}
NAMED = {"encryption": "SSE-KMS", "existing": {"kms_key_arn": FIRST}}
OTHER = {"encryption": "SSE-KMS", "existing": {"kms_key_arn": SECOND}}
PLACE = "s3://acme-lake/data/production"
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str | None]] = {
    # the deployment before and after, what changes of the destination, and the refusal's beginning
    "no change": (NAMED, NAMED, {}, None),
    "a key in place of S3's own": ({}, NAMED, {}, None),
    "another key": (NAMED, OTHER, {}, f"deployment.encryption: objects under '{FIRST}'"),
    "another key, said": (NAMED, OTHER | {"earlier_kms_key_arns": [FIRST]}, {}, None),
    "another key, and the wrong one said": (
        NAMED,
        OTHER | {"earlier_kms_key_arns": [SECOND]},
        {},
        f"deployment.encryption: objects under '{FIRST}'",
    ),
    "no key": (NAMED, {}, {}, f"deployment.encryption: objects under '{FIRST}'"),
    "no key, said": (NAMED, {"earlier_kms_key_arns": [FIRST]}, {}, None),
    "in place of the stack's own key": (MADE, NAMED, {}, "deployment.encryption: objects under the key that the stack"),
    "in place of the stack's own key, said": (MADE, NAMED | {"earlier_kms_key_arns": [SECOND]}, {}, None),
    "another prefix": ({}, {}, {"s3_path_prefix": "data/new"}, f"destination: tables and their records lie at {PLACE}"),
    "another prefix, said": ({}, {"left_behind": [PLACE]}, {"s3_path_prefix": "data/new"}, None),
    "another bucket": ({}, {}, {"s3_bucket_name": "acme-new"}, f"destination: tables and their records lie at {PLACE}"),
    "another region": ({}, {}, {"bucket_region": "eu-west-1"}, f"destination: tables and their records lie at {PLACE}"),
}


CATALOGS: dict[str, tuple[str | None, str | None, list[str], str | None]] = {
    # the catalog's account before and after, what is said to be left behind, and whose tables the refusal names
    "the same": ("999999999999", "999999999999", [], None),
    "another": (None, "999999999999", [], "own"),
    "another, said": (None, "999999999999", ["glue:own"], None),
    "of a third account": ("999999999999", "888888888888", [], "999999999999"),
    "our own again": ("999999999999", None, [], "999999999999"),
    "our own again, said": ("999999999999", None, ["glue:999999999999"], None),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CATALOGS)
def test_another_catalog(synth: Synth, name: str) -> None:
    before, after, left_behind, refused = CATALOGS[name]
    folder, _ = synth.run({}, top={"catalog_account": before} if before else {})
    made = synth.run({"left_behind": left_behind}, folder, top={"catalog_account": after} if after else {})
    if refused is None:
        list_changes(*made)
        return
    with pytest.raises(SpecInvalidError) as caught:
        list_changes(*made)
    (problem,) = caught.value.problems
    assert problem.startswith(f"catalog_account: tables are in the Data Catalog of account {refused}, and new loads ")
    assert problem.endswith(f"deployment.left_behind: [glue:{refused}].")


@pytest.fixture(scope="module")
def deployed(synth: Synth) -> dict[str, Path]:
    """Each deployment before, once."""
    return {str(before): synth.run(before)[0] for before in ({}, MADE, NAMED)}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CHANGES)
def test_change(synth: Synth, deployed: dict[str, Path], name: str) -> None:
    before, after, destination, refusal = CHANGES[name]
    made = synth.run(after, deployed[str(before)], **destination)
    if refusal is None:
        list_changes(*made)
        return
    with pytest.raises(SpecInvalidError) as caught:
        list_changes(*made)
    (problem,) = caught.value.problems
    assert problem.startswith(refusal)


def test_a_key_that_would_be_deleted(synth: Synth) -> None:
    """In a stage that is not protected, CloudFormation deletes what leaves the template."""
    before = synth.run(MADE | {"protect": False})[0]
    with pytest.raises(SpecInvalidError, match="would schedule the deletion of the key") as caught:
        list_changes(*synth.run(NAMED | {"protect": False}, before))
    assert len(caught.value.problems) == 2
