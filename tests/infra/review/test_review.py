"""Reviews of deployments with everything in them, and of ones that bring what is there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from infra.application import add_stacks
from infra.bundle.build import build
from infra.review import make_page, markdown
from infra.review.permissions import list_identities, list_protected_resources, list_unattached
from infra.review.templates import Templates
from infra.settings import Settings, read_defaults
from tests.infra.conftest import SettingsFor
from tests.infra.destination.airbyte import file
from tests.infra.destination.lakes import EVERYTHING, lake
from tests.infra.destination.test_trust import MACHINES
from tests.policy.estuary import content, endless

pytestmark = pytest.mark.synth

JOB_ROLE = "arn:aws:iam::123456789012:role/Job"
BROUGHT = {
    "account": "123456789012",
    "existing": {"bucket": True, "databases": True, "job_role_arn": JOB_ROLE},
    "spark": {"mode": "STREAMING"},
}
VARIANTS = {
    "everything": lake(EVERYTHING | {"schedule": {"rate": "6 hours"}}),
    "brought": lake(BROUGHT),
    "airbyte": file("airbyte", trust=[{"vendor": "airbyte-cloud", "external_id": "acme-2026"}], vendor_verbatim=True),
    "estuary": content(top=endless(iam_user={"paths": ["recentchanges"]})),
    "machines": file("airbyte", trust=MACHINES, account="123456789012"),
    "verbatim": lake({"trust": EVERYTHING["trust"], "vendor_verbatim": True, "allow_reset": True}),
}

ROWS = {
    "everything": [
        "| `acme-lake` | S3 Bucket | lakewriter-flights-prod-destination | deleted with every object in it |",
        "ConsumerRole` | `arn:aws:iam::805595753828:root` | `<ssm:/lake/id>` | lake.yaml names this party. |",
        "| `VendorUser` | holders of its access key | none | deployment.iam\\_user is on. |",
        "| `arn:aws:iam::123456789012:role/lake/<JobRole>` | database supaflow\\_nyc\\_public | "
        "`DESCRIBE`<br>`CREATE_TABLE` |",
        "| `SnowflakeComputeConsumerRole` | `arn:aws:iam::123456789012:root` | denied to everybody | "
        "Nobody may assume the role until Snowflake's IAM user is known. |",
        "| For example | every 6 hours, counted from the deployment |",
        "| The most in a day | 4 starts, 336 vCPU hours if each took all it may<br>25.45 USD |",
        "| Its own, to write | `s3://acme-lake/data/production/*` | Neither tables nor paths are given, so it shares "
        "the prefix: give either to narrow it. |",
        "| `s3:DeleteObjectVersion`<br>in its document, and not allowed | Its own files: it would delete for good what "
        "versioning keeps. | `vendor_verbatim: true` |",
        "| Refused: changes to the job's tables and databases | `database/supaflow_nyc_public`<br>"
        "`table/supaflow_nyc_public/flights`<br>",
    ],
    "brought": [
        "> **Note:** Role arn:aws:iam::123456789012:role/Job is used as it is. Have its owner attach what "
        "'lakewriter policy' prints for the job, and trust emr-serverless.amazonaws.com.",
        "None: loads start by hand, or from another system that starts the state machine.",
        "| A load | goes on until it is stopped |",
        "| The most in a day | 16 vCPUs x 24 h = 384 vCPU hours<br>66 GB x 24 h = 1,584 GB hours<br>29.36 USD |",
        "Nobody.",
    ],
    "airbyte": [
        "| crm.users<br>`s3://raw/users` | `crm.users` | `data/crm/users/2027_1.parquet` |",
        "`arn:aws:iam::094410056844:user/delegated_access_user` | `acme-2026` |",
        "`s3:PutObjectAcl` | `arn:aws:s3:::acme-lake`<br>`arn:aws:s3:::acme-lake/*` |",
        "| Role ARN | `",
        "| S3 Path Format | `${STREAM_NAME}/${YEAR}_` |",
    ],
    "estuary": [
        "| changes<br>`s3://acme-landing/changes` | `changes` | `changes/v0000000000/00000000000000000001.parquet` |",
        "s3://acme-lake/changes, s3://acme-lake/shop/orders",
        "To record what has been read: the next run continues from there.",
        "| `VendorUser` | holders of its access key | none |",
        "| Its own, to write | `s3://acme-lake/recentchanges/*` |  |",
        "| Refused: files among the job's own, which are only ever added to | `s3://acme-lake/changes/*`<br>"
        "`s3://acme-lake/shop/orders/*` | Another folder or table for the party's pipeline; to read the job's: ",
        "| Upload Interval in Seconds | `300` |",
    ],
    "machines": [
        "| `Host` | the machine that has the role | none | lake.yaml names the role of the machine that this party "
        "runs on. |",
        "| `PodsConsumerRole` | `pods.eks.amazonaws.com` | none<br>"
        "`aws:RequestTag/eks-cluster-arn = arn:aws:eks:eu-west-1:123456789012:cluster/tools`<br>"
        "`aws:RequestTag/kubernetes-namespace = airbyte`<br>",
        "| `TokensConsumerRole` | `arn:aws:iam::123456789012:oidc-provider/oidc.example.org/id/A1` | none<br>"
        "`oidc.example.org/id/A1:aud = sts.amazonaws.com`<br>",
        "Role Host: of a machine",
        "| Its own, to write | `s3://acme-lake/own/*` |  |",
    ],
    "verbatim": ["CloudFormation refuses to delete lakewriter-flights-prod-destination."],
}


@pytest.fixture(scope="module")
def reviewed(
    settings_for: SettingsFor, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, Settings]]:
    bundle = tmp_path_factory.mktemp("bundle")
    build(bundle, ["x86_64"], fetch=lambda *_: None)

    def synthesise(name: str) -> tuple[Path, Settings]:
        settings = settings_for(VARIANTS[name], bundle=bundle)
        app = cdk.App(context=read_defaults(), analytics_reporting=False)
        add_stacks(app, settings)
        return Path(app.synth().directory), settings

    return synthesise


@pytest.mark.parametrize("name", VARIANTS)
def test_review(reviewed: Any, name: str) -> None:
    folder, settings = reviewed(name)
    text = markdown.render(make_page(folder, settings))
    assert [row for row in ROWS[name] if row not in text] == []
    templates = Templates.read(folder, settings.stack_names)
    holders = [*list_identities(templates), *list_unattached(templates), *list_protected_resources(templates)]
    unexplained = [(holder.name, each) for holder in holders for each in holder.statements if not each.reason]
    assert unexplained == []
