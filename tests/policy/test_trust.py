"""Trust policies, and who gets in by them."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.policy.role_documents import Document, Who
from lakewriter.policy.roles import list_roles
from lakewriter.policy.trust_policies import (
    Principal,
    make_closed_trust,
    make_job_trust,
    make_pod_trust,
    make_role_trust,
    make_service_trust,
    make_web_identity_trust,
)
from lakewriter.spec.trust import PodIdentity, WebIdentity
from tests.policy.lakes import ARNS, lake
from tests.support.iam import Policies, Request, simulate

ROLE = "arn:aws:iam::123456789012:role/Lake"
SUPAFLOW = "arn:aws:iam::805595753828:root"
SNOWFLAKE = "arn:aws:iam::999999999999:user/abc0-s"
APPLICATION = "arn:aws:emr-serverless:us-east-1:123456789012:/applications/00abc"


def test_job_trust() -> None:
    assert make_job_trust(ARNS)["Statement"] == [
        {
            "Sid": "TrustEmrServerless",
            "Effect": "Allow",
            "Principal": {"Service": "emr-serverless.amazonaws.com"},
            "Action": "sts:AssumeRole",
            "Condition": {
                "StringEquals": {"aws:SourceAccount": "123456789012"},
                "ArnLike": {"aws:SourceArn": "arn:aws:emr-serverless:us-east-1:123456789012:/applications/*"},
            },
        }
    ]
    assert "Condition" not in make_job_trust(ARNS, conditions=False)["Statement"][0]


def test_each_party_has_a_statement_and_an_id_of_its_own() -> None:
    assert make_role_trust(Principal(SUPAFLOW, ("id-1",)), Principal(SNOWFLAKE, ("id-2",)))["Statement"] == [
        {
            "Sid": sid,
            "Effect": "Allow",
            "Principal": {"AWS": arn},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
        }
        for sid, arn, external_id in [("TrustParty1", SUPAFLOW, "id-1"), ("TrustParty2", SNOWFLAKE, "id-2")]
    ]


USERS_OF_REDSHIFT = [
    # external ids, the condition: without one every user of a warehouse that has the role
    # https://docs.aws.amazon.com/redshift/latest/mgmt/authorizing-redshift-service-database-users.html
    ((), {}),
    (("arn:aws:redshift:us-east-1:123456789012:dbuser:wh/bi",),
     {"Condition": {"StringEquals": {"sts:ExternalId": ["arn:aws:redshift:us-east-1:123456789012:dbuser:wh/bi"]}}}),
]  # fmt: skip


@pytest.mark.parametrize(("external_ids", "condition"), USERS_OF_REDSHIFT)
def test_redshift_trust(external_ids: tuple[str, ...], condition: dict[str, Any]) -> None:
    services = ["redshift.amazonaws.com", "redshift-serverless.amazonaws.com"]
    assert make_service_trust("redshift", external_ids)["Statement"] == [
        {"Sid": "TrustService", "Effect": "Allow", "Principal": {"Service": services}, "Action": "sts:AssumeRole"}
        | condition
    ]


def test_redshift_reads_and_no_more(tmp_path: Path) -> None:
    """The actions are those of the page, https://docs.aws.amazon.com/redshift/latest/dg/c-spectrum-iam-policies.html."""
    made = lake(tmp_path, {"trust": [{"service": "redshift", "access": "read"}]})
    role = next(role for role in list_roles(made.spec, made.deployment, ARNS) if role.name == "redshift")
    assert role.who is Who.READER
    statements = [each for document in role.documents.values() for each in document["Statement"]]
    allowed = {action for each in statements if each["Effect"] == "Allow" for action in each["Action"]}
    assert allowed >= {"s3:GetObject", "s3:ListBucket", "glue:GetTable", "glue:GetPartitions", "glue:BatchGetPartition"}
    assert not any(action.split(":")[1].startswith(("Put", "Create", "Update", "Delete")) for action in allowed)


def test_closed_trust() -> None:
    assert make_closed_trust(ARNS)["Statement"] == [
        {
            "Sid": "NobodyYet",
            "Effect": "Deny",
            "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
            "Action": "sts:AssumeRole",
        }
    ]


OPEN = make_role_trust(Principal(SUPAFLOW, ("id-1",)), Principal(SNOWFLAKE, ("id-2",)))
MOVING = make_role_trust(Principal(SUPAFLOW, ("id-2", "id-1")), Principal(SNOWFLAKE, ("id-3",)))
MAY_ASSUME = {
    "Version": "2012-10-17",
    "Statement": [{"Sid": "All", "Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}],
}
SUPAFLOWS_SERVICE = "arn:aws:sts::805595753828:assumed-role/Service/s"
ATTEMPTS: list[tuple[Document, str, dict[str, str], bool]] = [
    # trust policy; who asks; context; whether it gets the role
    (OPEN, SUPAFLOWS_SERVICE, {"sts:ExternalId": "id-1"}, True),
    (OPEN, SNOWFLAKE, {"sts:ExternalId": "id-2"}, True),
    # while an id changes: the new one and the earlier one, and still no other party's
    (MOVING, SUPAFLOWS_SERVICE, {"sts:ExternalId": "id-1"}, True),
    (MOVING, SUPAFLOWS_SERVICE, {"sts:ExternalId": "id-2"}, True),
    (MOVING, SUPAFLOWS_SERVICE, {"sts:ExternalId": "id-3"}, False),
    (MOVING, SUPAFLOWS_SERVICE, {}, False),
    (MOVING, SNOWFLAKE, {"sts:ExternalId": "id-1"}, False),
    # another external id, none, one in other letters, the other party's
    (OPEN, SUPAFLOWS_SERVICE, {"sts:ExternalId": "id-3"}, False),
    (OPEN, SUPAFLOWS_SERVICE, {}, False),
    (OPEN, SUPAFLOWS_SERVICE, {"sts:ExternalId": "ID-1"}, False),
    (OPEN, SUPAFLOWS_SERVICE, {"sts:ExternalId": "id-2"}, False),
    (OPEN, SNOWFLAKE, {"sts:ExternalId": "id-1"}, False),
    # other principals
    (OPEN, "arn:aws:iam::999999999999:user/other", {"sts:ExternalId": "id-2"}, False),
    (OPEN, "arn:aws:sts::111111111111:assumed-role/Service/s", {"sts:ExternalId": "id-1"}, False),
    (OPEN, "arn:aws:sts::123456789012:assumed-role/Admin/s", {"sts:ExternalId": "id-1"}, False),
    (make_closed_trust(ARNS), "arn:aws:sts::123456789012:assumed-role/Admin/s", {}, False),
    (make_closed_trust(ARNS), SNOWFLAKE, {"sts:ExternalId": "id-2"}, False),
]


def test_who_gets_in() -> None:
    requests = [Request("sts:AssumeRole", ROLE, context, who) for _, who, context, _ in ATTEMPTS]
    policies = [Policies({"Own": MAY_ASSUME}, trust) for trust, *_ in ATTEMPTS]
    assert [found.allowed for found in simulate(requests, policies)] == [row[-1] for row in ATTEMPTS]


CLUSTER = "arn:aws:eks:us-east-1:123456789012:cluster/tools"
ISSUER = "oidc.eks.us-east-1.amazonaws.com/id/A1"
PODS = PodIdentity(cluster=CLUSTER, namespace="airbyte", service_account="airbyte-admin")
TOKENS = WebIdentity(
    provider=f"arn:aws:iam::123456789012:oidc-provider/{ISSUER}", namespace="airbyte", service_account="airbyte-admin"
)


def test_pods_of_one_service_account_by_pod_identity() -> None:
    """By AWS's page: the service needs TagSession beside AssumeRole, and its sessions have these tags."""
    assert make_pod_trust(PODS)["Statement"] == [
        {
            "Sid": "TrustParty1",
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {
                "StringEquals": {
                    "aws:RequestTag/eks-cluster-arn": CLUSTER,
                    "aws:RequestTag/kubernetes-namespace": "airbyte",
                    "aws:RequestTag/kubernetes-service-account": "airbyte-admin",
                }
            },
        }
    ]


def test_pods_of_one_service_account_by_tokens() -> None:
    assert make_web_identity_trust(TOKENS)["Statement"] == [
        {
            "Sid": "TrustParty1",
            "Effect": "Allow",
            "Principal": {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{ISSUER}"},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {
                "StringEquals": {
                    f"{ISSUER}:aud": "sts.amazonaws.com",
                    f"{ISSUER}:sub": "system:serviceaccount:airbyte:airbyte-admin",
                }
            },
        }
    ]


SERVICE = "emr-serverless.amazonaws.com"
ACCOUNT = {"aws:SourceAccount": "123456789012"}
SERVICES: list[tuple[str, dict[str, str], bool]] = [
    (SERVICE, ACCOUNT | {"aws:SourceArn": APPLICATION}, True),
    (SERVICE, {"aws:SourceAccount": "111111111111", "aws:SourceArn": APPLICATION}, False),
    (SERVICE, ACCOUNT | {"aws:SourceArn": APPLICATION.replace("us-east-1", "eu-west-1")}, False),
    (SERVICE, {}, False),
    ("ec2.amazonaws.com", ACCOUNT | {"aws:SourceArn": APPLICATION}, False),
]


def test_which_services_run_the_job() -> None:
    requests = [Request("sts:AssumeRole", ROLE, context, who) for who, context, _ in SERVICES]
    found = simulate(requests, Policies({}, make_job_trust(ARNS)))
    assert [decision.allowed for decision in found] == [row[-1] for row in SERVICES]


EVERYONE: dict[str, Any] = {
    "iam_user": True,
    "trust": [
        {"vendor": "supaflow", "external_id": "id-1"},
        {"principal": SNOWFLAKE, "external_id": "${ssm:/x}", "name": "analytics", "access": "read"},
        {"principal": SNOWFLAKE, "external_id": "id-3", "name": "laptop", "access": "load"},
        {"identity": {"irsa": TOKENS.model_dump()}, "name": "tools", "paths": ["tools"]},
        {"identity": {"ec2": "arn:aws:iam::123456789012:role/Host"}, "name": "host", "paths": ["host"]},
    ],
    "snowflake": {"compute": {"iam_user_arn": SNOWFLAKE}},
}


@pytest.mark.parametrize(
    ("deployment", "destination", "expected"),
    [
        ({}, {}, [("job", Who.JOB, "TrustEmrServerless")]),
        (
            {"existing": {"job_role_arn": ROLE}},
            {"iam_role_arn": ROLE},
            [("job", Who.JOB, None), ("Lake", Who.LOADER, None)],
        ),
        (
            EVERYONE,
            {},
            [
                ("job", Who.JOB, "TrustEmrServerless"),
                ("supaflow", Who.VENDOR, "TrustParty1"),
                ("analytics", Who.READER, "TrustParty1"),
                ("laptop", Who.LOADER, "TrustParty1"),
                ("tools", Who.VENDOR, "TrustParty1"),
                ("host", Who.VENDOR, None),
                ("user", Who.VENDOR, None),
                ("snowflake-catalog", Who.CATALOG, "NobodyYet"),
                ("snowflake-compute", Who.READER, "TrustParty1"),
            ],
        ),
    ],
)
def test_roles_of_a_file(tmp_path: Path, deployment: Any, destination: Any, expected: list[Any]) -> None:
    loaded = lake(tmp_path, deployment, **destination)
    found = [
        (role.name, role.who, role.trust and role.trust["Statement"][0]["Sid"])
        for role in list_roles(loaded.spec, loaded.deployment, ARNS)
    ]
    assert found == expected
