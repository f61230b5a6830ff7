"""Jars of others, for checks against their own code; never needed by the product."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

CACHE: Final = Path(os.environ.get("LAKEWRITER_MAVEN", Path(__file__).parents[2] / "build" / "maven"))
PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
POM: Final = """<project>
<modelVersion>4.0.0</modelVersion><groupId>lakewriter</groupId><artifactId>interop</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies>
</project>
"""


def jars(wanted: Iterable[str], *, sha256: dict[str, str] | None = None) -> list[Path]:
    """``group:artifact:version[:classifier]`` each, on this disk; the test is skipped, with the reason, where Maven
    cannot get them."""
    if not os.environ.get("LAKEWRITER_INTEROP"):
        pytest.skip("LAKEWRITER_INTEROP is not set; it allows Maven to fetch jars of some 120 MB.")
    coordinates = list(wanted)
    missing = [each for each in coordinates if not _file(each).exists()]
    if missing:
        _copy(missing)
    for each, digest in (sha256 or {}).items():
        assert hashlib.sha256(_file(each).read_bytes()).hexdigest() == digest, each
    return [_file(each) for each in coordinates]


def _file(coordinates: str) -> Path:
    _, *names = coordinates.split(":")
    return CACHE / ("-".join(names) + ".jar")


def _copy(coordinates: list[str]) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("Maven, which fetches the jars, is not on this machine.")
    CACHE.mkdir(parents=True, exist_ok=True)
    pom = CACHE / "pom.xml"
    pom.write_text(POM.format(dependencies="".join(map(_dependency, coordinates))), "utf-8")
    options = [f"-DoutputDirectory={CACHE}", "-DexcludeTransitive=true"]
    command = [maven, "-q", "-B", "-f", str(pom), f"{PLUGIN}:copy-dependencies", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"Maven could not fetch the jars: {done.stdout[-1000:]}")


def _dependency(coordinates: str) -> str:
    group, artifact, version, *classifier = coordinates.split(":")
    fields = {"groupId": group, "artifactId": artifact, "version": version}
    fields |= {"classifier": classifier[0]} if classifier else {}
    named = "".join(f"<{name}>{text}</{name}>" for name, text in fields.items())
    # What a jar needs besides is in it, or named too; Maven would look for all of it all the same.
    nothing_else = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    return f"<dependency>{named}{nothing_else}</dependency>"
