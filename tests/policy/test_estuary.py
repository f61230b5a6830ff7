"""Policies of a destination whose tables have no prefix in common, and of continuous runs.

Expected: one entry for each binding's path, and for whoever runs loads one for the pipeline's records at the root.
"""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.policy.bucket import deny_replacement
from lakewriter.policy.role_documents import Who, make_documents
from tests.policy.estuary import endless, estuary
from tests.policy.lakes import ARNS, BUCKET, KEY, statement
from tests.support.lint import findings

TABLES = ["changes", "changes/", "changes/*", "shop/orders", "shop/orders/", "shop/orders/*"]
RECORDS = [
    "_lakewriter/wiki", "_lakewriter/wiki/", "_lakewriter/wiki/*",
    "_lakewriter/_writers", "_lakewriter/_writers/", "_lakewriter/_writers/*",
]  # fmt: skip
WHOSE = [
    # who; what may be listed; which objects, by statement
    (
        Who.JOB, [*TABLES, *RECORDS],
        {"WriteObjects": ["changes/*", "shop/orders/*", "_lakewriter/wiki/*", "_lakewriter/_writers/*"]},
    ),
    (
        Who.READER, TABLES,
        {
            "ReadObjects": ["changes/*", "shop/orders/*"],
            "KeepOutOfControlObjects": ["_lakewriter/*", "*/_lakewriter/*"],
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("who", "listed", "objects"), WHOSE)
def test_each_path_is_an_entry(tmp_path: Path, who: Who, listed: list[str], objects: dict[str, list[str]]) -> None:
    lake = estuary(tmp_path)
    listing, _, *others = make_documents(lake.spec, lake.deployment, who, ARNS)["S3"]["Statement"]
    assert listing == statement("ListUnderPrefix", ["s3:ListBucket"], [BUCKET], {"StringLike": {"s3:prefix": listed}})
    found = {each["Sid"]: [arn.removeprefix(f"{BUCKET}/") for arn in each["Resource"]] for each in others}
    assert found == objects


def test_no_object_of_a_table_is_replaced(tmp_path: Path) -> None:
    (kept,) = deny_replacement(estuary(tmp_path).spec, ARNS)
    assert kept["Resource"] == [f"{BUCKET}/changes/*", f"{BUCKET}/shop/orders/*"]


def test_the_vendor_documents_no_policy(tmp_path: Path) -> None:
    lake = estuary(tmp_path, top={"deployment": {"vendor_verbatim": True}})
    with pytest.raises(SpecInvalidError, match="whose vendor publishes a policy, got 'estuary-s3-parquet'"):
        make_documents(lake.spec, lake.deployment, Who.VENDOR, ARNS)


OBJECTS = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
ABOVE = ["acme", "acme/", "acme/state", "acme/state/", "acme/state/*"]
THROUGH_S3 = {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}
ASSUMED = {"iam_role_arn": "arn:aws:iam::123456789012:role/Lake"}
PLACES: list[tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = [
    # over the file, over the destination; the statements on checkpoints
    ({"checkpoint": "s3://acme-state/acme/state"}, {}, []),
    (endless("/var/lib/lakewriter"), {}, []),
    (
        endless("s3://acme-state/acme/state"), {},
        [
            statement(
                "ListCheckpoints", ["s3:ListBucket"], ["arn:aws:s3:::acme-state"],
                {"StringLikeIfExists": {"s3:prefix": ABOVE}},
            ),
            statement("WriteCheckpoints", OBJECTS, ["arn:aws:s3:::acme-state/acme/state/*"]),
        ],
    ),
    (
        endless("s3a://acme-state"), {},
        [
            statement("ListCheckpoints", ["s3:ListBucket"], ["arn:aws:s3:::acme-state"]),
            statement("WriteCheckpoints", OBJECTS, ["arn:aws:s3:::acme-state/*"]),
        ],
    ),
    # in the destination's own bucket, whose key a job that takes a role does not have otherwise
    (
        endless(existing={"kms_key_arn": KEY}, encryption="SSE-KMS"), ASSUMED,
        [
            statement(
                "ListCheckpoints", ["s3:ListBucket"], [BUCKET],
                {"StringLikeIfExists": {"s3:prefix": ["_checkpoints", "_checkpoints/", "_checkpoints/*"]}},
            ),
            statement("WriteCheckpoints", OBJECTS, [f"{BUCKET}/_checkpoints/*"]),
            statement("UseKeyThroughS3", ["kms:Decrypt", "kms:GenerateDataKey"], [KEY], THROUGH_S3),
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("top", "destination", "expected"), PLACES)
def test_checkpoints(tmp_path: Path, top: Any, destination: Any, expected: Any) -> None:
    lake = estuary(tmp_path, top=top, **destination)
    found = make_documents(lake.spec, lake.deployment, Who.JOB, ARNS)
    assert found.get("Checkpoint", {"Statement": []})["Statement"] == expected
    assert [each for name in found for each in findings(found[name])] == []
