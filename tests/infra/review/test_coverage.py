"""What statements apply to: whether one is within others, and whether two meet."""

from typing import Any

import pytest

from infra.review.coverage import list_uncovered, meet
from infra.review.permissions import Statement

LAKE = "arn:aws:s3:::acme-lake"
LIKE = "StringLike s3:prefix"


def allow(actions: list[str], resources: list[str], *principals: str, **conditions: Any) -> Statement:
    named = tuple((name.replace("_", " ", 1), tuple(values)) for name, values in conditions.items())
    return Statement("Allow", principals, tuple(actions), tuple(resources), named, "")


def under(*values: str, name: str = LIKE) -> Statement:
    return Statement("Allow", (), ("s3:ListBucket",), (LAKE,), ((name, values),), "")


NEGATED = "StringNotEquals kms:ViaService"
UNCOVERED: list[tuple[list[Statement], list[Statement], int]] = [
    # statements; others; the parts of the first that are not within the others
    ([allow(["a:B", "a:C"], ["x", "y"])], [allow(["a:C"], ["y", "x"]), allow(["A:b"], ["*"])], 0),
    ([allow(["a:B", "a:C"], ["x", "y"])], [allow(["a:C"], ["y"]), allow(["a:B"], ["x"])], 2),
    ([allow(["s3:GetObject"], [f"{LAKE}/crm/*"])], [allow(["s3:Get*"], [f"{LAKE}/*"])], 0),
    ([allow(["s3:GetObject"], [f"{LAKE}/*"])], [allow(["s3:Get*"], [f"{LAKE}/crm/*"])], 1),
    # a star is no character that a question mark stands for
    ([allow(["a:B"], ["x*"])], [allow(["a:B"], ["x?"])], 1),
    ([allow(["a:B"], ["x1"])], [allow(["a:B"], ["x?"])], 0),
    ([allow(["a:B"], ["x[1]"])], [allow(["a:B"], ["x1"])], 1),
    # conditions
    ([under("data/crm", "data/crm/*")], [under("data", "data/*")], 0),
    ([under("data", "data/*")], [under("data/crm/*")], 1),
    ([under("data/crm", name="StringEquals s3:prefix")], [under("data/*")], 0),
    ([under("data/*")], [under("data/*", name="StringLikeIfExists s3:prefix")], 0),
    ([under("data/*", name="StringLikeIfExists s3:prefix")], [under("data/*")], 1),
    ([allow(["s3:ListBucket"], [LAKE])], [under("*")], 1),
    ([under("data/*")], [allow(["s3:ListBucket"], [LAKE])], 0),
    ([under("s3", "sqs", name=NEGATED)], [under("s3", name=NEGATED)], 0),
    ([under("s3", name=NEGATED)], [under("s3", "sqs", name=NEGATED)], 1),
    ([under("true", name="Bool aws:SecureTransport")], [under("false", name="Bool aws:SecureTransport")], 1),
    # principals
    ([allow(["sts:AssumeRole"], [], "arn:aws:iam::1:root")], [allow(["sts:AssumeRole"], [], "anyone")], 0),
    ([allow(["sts:AssumeRole"], [], "anyone")], [allow(["sts:AssumeRole"], [], "arn:aws:iam::1:root")], 1),
]


@pytest.mark.parametrize(("some", "others", "count"), UNCOVERED)
def test_parts_that_no_other_statement_has(some: list[Statement], others: list[Statement], count: int) -> None:
    assert len(list(list_uncovered(some, others))) == count


MEETING: list[tuple[Statement, Statement, bool]] = [
    (allow(["s3:*"], [f"{LAKE}/data/a/*"]), allow(["s3:PutObject"], [f"{LAKE}/data/*"]), True),
    (allow(["s3:*"], [f"{LAKE}/data/a/*"]), allow(["s3:PutObject"], [f"{LAKE}/crm/*"]), False),
    (allow(["s3:*"], [f"{LAKE}/*/_lakewriter/*"]), allow(["s3:PutObject"], [f"{LAKE}/crm/*"]), True),
    (allow(["glue:*"], ["*"]), allow(["s3:PutObject"], ["*"]), False),
    (under("data", "data/_*"), under("data/crm/*"), False),
    (under("data", "data/_*"), under("data/*"), True),
    (under("data"), allow(["s3:ListBucket"], [LAKE]), True),
    (allow(["sts:AssumeRole"], [], "arn:aws:iam::1:root"), allow(["sts:AssumeRole"], [], "arn:aws:iam::2:root"), False),
]


@pytest.mark.parametrize(("one", "other", "expected"), MEETING)
def test_statements_that_meet(one: Statement, other: Statement, expected: bool) -> None:
    assert (meet(one, other), meet(other, one)) == (expected, expected)
