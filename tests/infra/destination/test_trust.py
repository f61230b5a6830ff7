"""Who may take which role, and what they have to show."""

from typing import Any

import pytest

from lakewriter.errors import SecretUnresolvedError, SpecInvalidError
from tests.infra.conftest import SettingsFor
from tests.infra.destination.airbyte import file
from tests.infra.destination.conftest import Synthesise, Synthesised
from tests.infra.destination.lakes import BOUNDARY, SUPAFLOW, lake, of_type, statements, trust

pytestmark = pytest.mark.synth

SNOWFLAKE_USER = "arn:aws:iam::123456789001:user/abc1-b-self1234"


def _party(arn: str, external_id: Any) -> list[Any]:
    return [
        {
            "Sid": "TrustParty1",
            "Effect": "Allow",
            "Principal": {"AWS": arn},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
        }
    ]


def test_job_role_is_for_applications_of_this_account(plain: dict[str, Any]) -> None:
    applications = ["arn:aws:emr-serverless:us-east-1:", {"Ref": "AWS::AccountId"}, ":/applications/*"]
    assert trust(plain, "JobRole") == [
        {
            "Sid": "TrustEmrServerless",
            "Effect": "Allow",
            "Principal": {"Service": "emr-serverless.amazonaws.com"},
            "Action": "sts:AssumeRole",
            "Condition": {
                "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
                "ArnLike": {"aws:SourceArn": {"Fn::Join": ["", applications]}},
            },
        }
    ]


def test_job_role_without_conditions(synthesise: Synthesise) -> None:
    (only,) = trust(synthesise(lake({"source_role_conditions": False})).template, "JobRole")
    assert "Condition" not in only


def test_vendor_has_to_show_its_external_id(plain: dict[str, Any]) -> None:
    # The account that the vendor's set-up page names.
    assert trust(plain, "SupaflowConsumerRole") == _party("arn:aws:iam::805595753828:root", "acme-2026")


def test_every_party_has_a_role_and_an_external_id_of_its_own(full: dict[str, Any]) -> None:
    parameter = {"Ref": "SsmParameterValuelakeidC96584B6F00A464EAD1953AFF4B05118Parameter"}
    assert full["Parameters"][parameter["Ref"]] == {
        "Type": "AWS::SSM::Parameter::Value<String>",
        "Default": "/lake/id",
    }
    assert trust(full, "SupaflowConsumerRole") == _party("arn:aws:iam::805595753828:root", "acme-2026")
    assert trust(full, "Second131b00396ConsumerRole") == _party("arn:aws:iam::805595753828:root", parameter)
    assert trust(full, "LaptopConsumerRole") == _party("arn:aws:iam::111122223333:role/Laptop", "laptop-1")


def test_snowflakes_roles_are_closed_until_it_has_said_who_it_is(full: dict[str, Any]) -> None:
    closed = {
        "Sid": "NobodyYet",
        "Effect": "Deny",
        "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
        "Action": "sts:AssumeRole",
    }
    assert trust(full, "SnowflakeCatalogConsumerRole") == [closed]
    assert trust(full, "SnowflakeComputeConsumerRole") == [closed]


def test_snowflakes_roles_open_one_by_one(synthesise: Synthesise) -> None:
    given = {"snowflake": {"compute": {"iam_user_arn": SNOWFLAKE_USER, "external_id": "acme-compute"}}}
    template = synthesise(lake(given)).template
    assert trust(template, "SnowflakeComputeConsumerRole") == _party(SNOWFLAKE_USER, "acme-compute")
    assert trust(template, "SnowflakeCatalogConsumerRole")[0]["Effect"] == "Deny"


def test_redshifts_role_needs_no_external_id(synthesise: Synthesise) -> None:
    template = synthesise(lake({"trust": [{"service": "redshift", "access": "read"}]})).template
    (trusted,) = trust(template, "RedshiftConsumerRole")
    assert trusted["Principal"] == {"Service": ["redshift.amazonaws.com", "redshift-serverless.amazonaws.com"]}
    assert "Condition" not in trusted
    # As the statements of "lakewriter queries" look it up.
    shown = {output["Description"]: output["Value"] for output in template["Outputs"].values()}
    assert shown["IAM Role ARN (redshift)"] == {"Fn::GetAtt": ["RedshiftConsumerRole", "Arn"]}
    assert "External ID (redshift)" not in shown


def test_external_id_from_the_environment(synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_EXTERNAL_ID", "from-the-environment")
    template = synthesise(lake({"trust": [{**SUPAFLOW, "external_id": "${env:LAKE_EXTERNAL_ID}"}]})).template
    assert trust(template, "SupaflowConsumerRole") == _party("arn:aws:iam::805595753828:root", "from-the-environment")


def test_external_id_that_the_environment_lacks(settings_for: SettingsFor) -> None:
    settings = settings_for(lake({"trust": [{**SUPAFLOW, "external_id": "${env:NOT_SET_ANYWHERE}"}]}))
    with pytest.raises(SecretUnresolvedError, match="NOT_SET_ANYWHERE"):
        settings.read_external_id(settings.deployment.trust[0].external_ids[0])


def test_a_role_takes_the_earlier_ids_beside_the_present_one(synthesise: Synthesise) -> None:
    """Whoever types the form reads the present one in the outputs."""
    moving = SUPAFLOW | {"external_id": "acme-2027", "earlier_external_ids": ["acme-2026", "${ssm:/lake/id}"]}
    compute = {"iam_user_arn": SNOWFLAKE_USER, "external_id": "acme-2027", "earlier_external_ids": ["acme-2026"]}
    template = synthesise(lake({"trust": [moving], "snowflake": {"compute": compute}})).template
    parameter = {"Ref": "SsmParameterValuelakeidC96584B6F00A464EAD1953AFF4B05118Parameter"}
    ids = ["acme-2027", "acme-2026", parameter]
    assert trust(template, "SupaflowConsumerRole") == _party("arn:aws:iam::805595753828:root", ids)
    assert trust(template, "SnowflakeComputeConsumerRole") == _party(SNOWFLAKE_USER, ["acme-2027", "acme-2026"])
    shown = {output["Description"]: output["Value"] for output in template["Outputs"].values()}
    assert shown["External ID"] == shown["Snowflake: STORAGE_AWS_EXTERNAL_ID"] == "acme-2027"


@pytest.mark.parametrize("name", ["job", "user", "snowflake-catalog", "snowflake-compute"])
def test_names_of_the_pipelines_own_roles_are_taken(name: str, settings_for: SettingsFor) -> None:
    with pytest.raises(SpecInvalidError, match=f"'{name}' is what a role of the pipeline's own is called"):
        settings_for(lake({"trust": [{**SUPAFLOW, "name": name}]}))


def test_roles_and_user_have_path_and_boundary(full: dict[str, Any]) -> None:
    identities = {**of_type(full, "IAM::Role"), **of_type(full, "IAM::User")}
    # The role of the function that empties buckets is CDK's own, without a path.
    pathless = [name for name, given in identities.items() if given.get("Path") != "/lake/"]
    assert pathless == ["CustomS3AutoDeleteObjectsCustomResourceProviderRole3B1BD092"]
    assert {given["PermissionsBoundary"] for given in identities.values()} == {BOUNDARY}


LENGTHS = [
    # External ids, the characters of the policy if they are more than an account's first quota.
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: an id has at most 1,224 characters.
    (("a" * 1224,), None),
    (("a" * 1224, "b" * 600), None),
    (("a" * 1224, "b" * 1224), 2_660),
]


@pytest.mark.parametrize(("ids", "size"), LENGTHS)
def test_trust_policy_longer_than_the_quota_is_a_warning(
    synthesise: Synthesise, ids: tuple[str, ...], size: int | None
) -> None:
    party = {"vendor": "supaflow", "external_id": ids[0], "earlier_external_ids": list(ids[1:]), "name": "supaflow"}
    warnings = synthesise(lake({"trust": [party]})).warnings
    said = f"The trust policy of role 'supaflow' has {size} characters. IAM allows 2048 unless"
    assert any(said in warning for warning in warnings) == (size is not None)
    assert any("trust-length" in warning for warning in warnings) == (size is not None)


HOST = "arn:aws:iam::123456789012:role/tools/Host"
PODS = {"namespace": "airbyte", "service_account": "airbyte-admin"}
MACHINES = [
    {"vendor": "airbyte-cloud", "identity": {"ec2": HOST}, "paths": ["/own"]},
    {
        "name": "pods",
        "identity": {"eks_pod_identity": PODS | {"cluster": "arn:aws:eks:eu-west-1:123456789012:cluster/tools"}},
        "paths": ["/pods"],
    },
    {
        "name": "tokens",
        "identity": {"irsa": PODS | {"provider": "arn:aws:iam::123456789012:oidc-provider/oidc.example.org/id/A1"}},
        "paths": ["/tokens"],
    },
]


@pytest.fixture(scope="module")
def machines(synthesise: Synthesise) -> Synthesised:
    """Airbyte's file, whose product runs on machines of one's own."""
    given = {"account": "123456789012", "permissions_boundary_arn": BOUNDARY}
    return synthesise(file("airbyte", trust=MACHINES, **given))


def test_a_machines_own_role_gets_the_policies(machines: Synthesised) -> None:
    """The third way of Airbyte's and Hero Pixel's pages: neither keys nor a role in the form."""
    template = machines.template
    policies = [
        policy for policy in of_type(template, "IAM::ManagedPolicy").values() if policy.get("Roles") == ["Host"]
    ]
    written = [
        action
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Sid"] == "WriteObjects"
        for action in statement["Action"]
    ]
    assert "s3:PutObjectAcl" in written
    assert not any("Host" in name or "AirbyteCloud" in name for name in of_type(template, "IAM::Role"))
    kept_out = statements(template, "BucketPolicy")["KeepOutOfControlObjects"]["Condition"]
    assert HOST in str(kept_out)
    shown = {output["Description"]: output["Value"] for output in template["Outputs"].values()}
    assert "Role ARN" not in shown
    assert shown["IAM Role ARN (airbyte-cloud)"] == HOST
    assert [warning for warning in machines.warnings if f"attached to {HOST}" in warning and BOUNDARY in warning]


def test_pods_get_roles_of_their_own(machines: Synthesised) -> None:
    (by_association,), (by_token,) = (trust(machines.template, f"{name}ConsumerRole") for name in ("Pods", "Tokens"))
    assert by_association["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert by_token["Action"] == "sts:AssumeRoleWithWebIdentity"
    shown = {output["Description"]: output["Value"] for output in machines.template["Outputs"].values()}
    assert shown["IAM Role ARN (pods)"] == {"Fn::GetAtt": ["PodsConsumerRole", "Arn"]}
    assert not any(label.startswith("External ID") for label in shown)
