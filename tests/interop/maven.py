"""Jars from Maven Central, for checks against the Iceberg project's own code; never needed by the product."""

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest

CENTRAL = "https://repo1.maven.org/maven2"
CACHE = Path(os.environ.get("LAKEWRITER_MAVEN", Path(__file__).parents[2] / "build" / "maven"))


def jar(coordinates: str, sha256: str = "") -> Path:
    """``group:artifact:version[:classifier]`` on this disk; the test is skipped, with the reason, where it is not."""
    if not os.environ.get("LAKEWRITER_INTEROP"):
        pytest.skip("LAKEWRITER_INTEROP is not set; it allows to fetch jars of some 120 MB from Maven Central.")
    group, artifact, version, *classifier = coordinates.split(":")
    name = "-".join([artifact, version, *classifier]) + ".jar"
    file = CACHE / name
    if not file.exists():
        url = f"{CENTRAL}/{group.replace('.', '/')}/{artifact}/{version}/{name}"
        try:
            with urllib.request.urlopen(url, timeout=120) as answer:
                body = answer.read()
        except (urllib.error.URLError, TimeoutError) as error:
            pytest.skip(f"{url} cannot be had ({error}).")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    if sha256:
        assert hashlib.sha256(file.read_bytes()).hexdigest() == sha256
    return file
