"""Permissions compared one by one: whether what one document allows, another does too."""

from typing import Any

import pytest

from lakewriter.policy.difference import find_uncovered, list_permissions
from lakewriter.policy.statements import allow, make_document

OBJECTS = "arn:aws:s3:::acme-lake/data/*"
PREFIX = {"StringLike": {"s3:prefix": ["data", "data/*"]}}

CASES = [
    # what is needed; what is given; which actions are lacking
    (allow("N", ["s3:GetObject"], [OBJECTS]), allow("G", ["s3:GetObject"], [OBJECTS]), []),
    (allow("N", ["s3:GetObject"], [OBJECTS]), allow("G", ["s3:Get*"], ["arn:aws:s3:::acme-lake/*"]), []),
    (allow("N", ["s3:GetObject"], [OBJECTS]), allow("G", ["S3:getobject"], ["*"]), []),
    # one object out of many, and another prefix that begins alike
    (allow("N", ["s3:GetObject"], [OBJECTS]), allow("G", ["s3:GetObject"], [OBJECTS[:-1] + "x"]), ["s3:GetObject"]),
    (
        allow("N", ["s3:GetObject"], [OBJECTS]),
        allow("G", ["s3:GetObject"], ["arn:aws:s3:::acme-lake/data/x*"]),
        ["s3:GetObject"],
    ),
    # a wider condition covers a narrower one; none covers any; any is no substitute for none
    (allow("N", ["s3:ListBucket"], ["*"], PREFIX), allow("G", ["s3:ListBucket"], ["*"]), []),
    (
        allow("N", ["s3:ListBucket"], ["*"], {"StringLike": {"s3:prefix": ["data"]}}),
        allow("G", ["s3:ListBucket"], ["*"], PREFIX),
        [],
    ),
    (
        allow("N", ["s3:ListBucket"], ["*"], PREFIX),
        allow("G", ["s3:ListBucket"], ["*"], {"StringLike": {"s3:prefix": ["data"]}}),
        ["s3:ListBucket"],
    ),
    (allow("N", ["s3:ListBucket"], ["*"]), allow("G", ["s3:ListBucket"], ["*"], PREFIX), ["s3:ListBucket"]),
]


@pytest.mark.parametrize(("needed", "given", "lacking"), CASES)
def test_what_is_lacking(needed: Any, given: Any, lacking: list[str]) -> None:
    found = find_uncovered(list_permissions([make_document([needed])]), list_permissions([make_document([given])]))
    assert [each.action for each in found] == lacking


def test_documents_as_people_write_them() -> None:
    """One statement without a list, single texts, and what cannot be compared: that is left out."""
    one = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}}
    denying = [{"Effect": "Deny", "Action": "s3:*", "Resource": "*"}]
    inverted = [{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}]
    assert [str(each) for each in list_permissions([one, make_document(denying), make_document(inverted)])] == [
        "s3:* on *"
    ]
