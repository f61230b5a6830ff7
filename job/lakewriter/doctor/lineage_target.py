"""Check that OpenLineage events can be sent; whatever is wrong with it, loads go on."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import requests

from lakewriter.aws import resolve
from lakewriter.doctor.probe import Finding, Probe
from lakewriter.errors import LakeError
from lakewriter.lineage.sender import INSTALL, is_installed
from lakewriter.spec.lineage import LOG, Lineage


@dataclass(frozen=True)
class LineageProbes:
    """The probe of ``lineage``; a pipeline without it has none."""

    settings: Lineage | None

    def list_probes(self) -> list[Probe]:
        """List the probe."""
        settings = self.settings
        return [] if settings is None else [Probe("lineage", lambda: self._check(settings))]

    def _check(self, settings: Lineage) -> Iterator[Finding]:
        if not is_installed():
            yield Finding(
                "lineage", "warning", "the package openlineage-python is not installed: no event is sent.",
                f"{INSTALL[0].upper()}{INSTALL[1:]}, or leave lineage out.",
            )  # fmt: skip
        elif settings.to == LOG:
            yield Finding("lineage", "ok", "OpenLineage events go to the log.")
        else:
            yield _ask_server(settings) if settings.is_remote else _look_at_file(Path(settings.to))


def _look_at_file(path: Path) -> Finding:
    there = path if path.exists() else path.parent
    if not there.exists() or path.is_dir() or not os.access(there, os.W_OK):
        return Finding(
            "lineage", "warning", f"the file {str(path)!r} of lineage.to cannot be written: no event is kept.",
            "Make its folder, or name another file.",
        )  # fmt: skip
    return Finding("lineage", "ok", f"OpenLineage events are appended to {str(path)!r}.")


def _ask_server(settings: Lineage) -> Finding:
    """Ask for the server's first page: any answer shows that there is one. An event would stay there."""
    try:
        if settings.api_key is not None:
            resolve(settings.api_key)
        requests.get(settings.to, timeout=settings.timeout_seconds, allow_redirects=False, stream=True).close()
    except LakeError as error:
        return Finding("lineage", "warning", f"lineage.api_key: {error.message}", error.remedy, error.code)
    except requests.RequestException as error:
        why = "did not answer" if isinstance(error, requests.Timeout) else "cannot be reached"
        return Finding(
            "lineage", "warning", f"the server {settings.to!r} of lineage.to {why}: events are lost until it does.",
            "Check the URL and the network path to it.",
        )  # fmt: skip
    return Finding("lineage", "ok", f"the server {settings.to!r} answers; whether it takes events, a load shows.")
