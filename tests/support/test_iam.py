"""The simulator says no to what AWS does not have, and tells which statement decides."""

from typing import Any

import pytest

from tests.support.iam import Decision, Policies, Request, simulate

KEY = "arn:aws:s3:::acme-lake/a"
ROLE = "arn:aws:iam::123456789012:role/Caller"


def document(sid: str, effect: str, actions: str, **more: Any) -> dict[str, Any]:
    statement = {"Sid": sid, "Effect": effect, "Action": actions, "Resource": "*", **more}
    return {"Version": "2012-10-17", "Statement": [statement]}


WRITE, READ = document("Write", "Allow", "s3:PutObject"), document("Read", "Allow", "s3:Get*")
NO_ONE = document("NoOne", "Deny", "s3:GetObject", Principal="*")
NOT_THIS_ROLE = document(
    "NotThisRole", "Deny", "s3:*", Principal="*", Condition={"ArnEquals": {"aws:PrincipalArn": ROLE}}
)

CASES: list[tuple[Any, ...]] = [
    # action; context; the caller's policies; the resource's; decision
    ("s3:GetObject", {}, {"A": WRITE, "B": READ}, None, ("Allowed", ("B/Read",), ())),
    ("s3:DeleteObject", {}, {"A": WRITE, "B": READ}, None, ("ImplicitlyDenied", (), ())),
    ("s3:GetObject", {}, {"B": READ}, NO_ONE, ("ExplicitlyDenied", ("resource/NoOne",), ())),
    ("s3:GetObject", {}, {"B": READ}, NOT_THIS_ROLE, ("ExplicitlyDenied", ("resource/NotThisRole",), ())),
    # a condition key that S3 does not have for the action, as in a policy that could never match
    ("s3:GetObject", {"s3:prefix": "a"}, {"B": READ}, None, ("Allowed", ("B/Read",), ("s3:prefix",))),
]


def test_decisions_of_several_callers_at_once() -> None:
    requests = [Request(action, KEY, context) for action, context, *_ in CASES]
    found = simulate(requests, [Policies(own, at) for *_, own, at, _ in CASES])
    assert found == [Decision(*expected) for *_, expected in CASES]


@pytest.mark.parametrize(
    ("action", "resource"),
    [("s3:PutObjects", KEY), ("s3:ListBucket", KEY), ("emrserverless:startJobRun", "*")],
)
def test_request_that_aws_does_not_have(action: str, resource: str) -> None:
    with pytest.raises(ValueError, match=f"no such request: {action} on "):
        simulate([Request("s3:GetObject", KEY), Request(action, resource)], Policies({}))
