"""Prove a deployment from beginning to end, in an account of yours or on the emulator, and write a transcript."""

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import click
import yaml
from moto.server import ThreadedMotoServer

from infra.settings import ROOT
from tests.proof.proof import Proof
from tests.proof.transcript import Transcript, compare
from tests.support import java
from tests.support.bundles import light_bundle
from tests.support.cloudformation import find_resource, our_templates
from tests.support.state_machine import ACCOUNT, JobRuns, client, step_functions

ARTIFACTS = "acme-artifacts"
EMULATED: dict[str, Any] = {
    "pipeline": "proof",
    "destination": {
        "type": "supaflow-s3-data-lake",
        "s3_bucket_name": "acme-proof",
        "bucket_region": "us-east-1",
        "s3_path_prefix": "data",
        "update_aws_glue_catalog": True,
        "destination_prefix": "nyc",
    },
    "source_root": "s3://acme-landing",
    "tables": [
        {
            "table": "airlines",
            "schema": "public",
            "read": {"format": "csv", "path": "airlines.csv", "options": {"header": True}},
            "primary_key": ["carrier"],
            "repeated": "allow",
        }
    ],
    "deployment": {"account": ACCOUNT, "artifact_bucket": ARTIFACTS, "stages": {"dev": {}}},
}
"""A small table, in the stage dev, which is not protected."""


@click.command()
@click.option("--account", "in_account", is_flag=True, help="In the account of the AWS configuration; it costs money.")
@click.option(
    "--lake", type=click.Path(path_type=Path, exists=True), help="A lake.yaml with deployment.artifact_bucket."
)
@click.option("--stage", default="dev", show_default=True, help="A stage to throw away: its bucket is emptied.")
@click.option("--bundle", type=click.Path(path_type=Path), default=ROOT / "build" / "bundle", help="scripts/bundle's.")
@click.option("--role-arn", help="The role that CloudFormation works with.")
@click.option("--transcript", "to", type=click.Path(path_type=Path), default=ROOT / "build" / "proof.json")
@click.option(
    "--compare",
    "with_transcript",
    type=click.Path(path_type=Path, exists=True),
    help="A transcript that this proof has to repeat, call by call and status by status.",
)
def prove(
    in_account: bool,
    lake: Path | None,
    stage: str,
    bundle: Path,
    role_arn: str | None,
    to: Path,
    with_transcript: Path | None,
) -> None:
    """Check, deploy, run the canary and a load, deploy under a load, undo it, and destroy: each by its AWS calls.

    Without --account it all happens on the emulator, whose job runs are loads on this machine.
    """
    if in_account and lake is None:
        raise click.UsageError("--account needs --lake FILE.")
    transcript = Transcript()
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            if in_account and lake is not None:
                content = yaml.safe_load(lake.read_text("utf-8"))
                with transcript.record():
                    Proof(content, stage, bundle, Path(folder), transcript, role_arn, reads_logs=True).run()
            else:
                prove_emulated(Path(folder), transcript)
        finally:
            transcript.write(to)
            click.echo(f"{len(transcript.calls)} calls, in {to}")
    if with_transcript is not None:
        recorded = json.loads(with_transcript.read_text("utf-8"))["calls"]
        differences = compare(recorded, transcript.calls)
        if differences:
            raise click.ClickException("\n".join([f"Other calls or answers than in {with_transcript}:", *differences]))


def prove_emulated(folder: Path, transcript: Transcript) -> None:
    """Prove the small table's file on the emulator."""
    role = f"arn:aws:iam::{ACCOUNT}:role/lakewriter-deployment"
    runs = JobRuns()
    bundle = light_bundle(folder / "bundle", "x86_64")
    with step_functions(runs), our_templates(), _serve() as url, mock.patch.dict(os.environ, AWS_REGION="us-east-1"):
        s3 = client("s3")
        for bucket in (ARTIFACTS, "acme-landing"):
            s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket="acme-landing", Key="airlines.csv", Body=b"carrier,name\nAA,American\nUA,United\n")

        def find_machine(_outputs: Mapping[str, str]) -> str:
            with transcript.pause():
                return _make_machine()

        proof = Proof(
            json.loads(json.dumps(EMULATED)), "dev", bundle, folder, transcript, role, find_machine, 0.2, client
        )
        runs.job = lambda parameters: _run_job(folder / "lake.yaml", parameters, url)
        with transcript.record():
            proof.run()


def _make_machine() -> str:
    """Make the stack's machine where the emulator executes: CloudFormation's is in a part that does not."""
    definition = find_resource("lakewriter-proof-dev-pipeline", "LoadsStateMachine").definition
    arn = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:loads"
    states = client("stepfunctions")
    if any(each["name"] == "loads" for each in states.list_state_machines()["stateMachines"]):
        states.update_state_machine(stateMachineArn=arn, definition=definition)
    else:
        states.create_state_machine(name="loads", definition=definition, roleArn=f"arn:aws:iam::{ACCOUNT}:role/Loads")
    return arn


def _run_job(lake: Path, parameters: Mapping[str, Any], url: str) -> str:
    """Run the entry point's arguments on this machine, as the job's run on EMR Serverless does."""
    arguments = list(parameters["JobDriver"]["SparkSubmit"]["EntryPointArguments"])
    arguments[1] = str(lake)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-m", "lakewriter", *arguments],
        cwd=ROOT,
        env=kept
        | {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
            "JDK_JAVA_OPTIONS": java.options(),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode:
        click.echo(done.stderr, err=True)
    return "FAILED" if done.returncode else "SUCCESS"


@contextmanager
def _serve() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    finally:
        server.stop()


if __name__ == "__main__":
    prove()
