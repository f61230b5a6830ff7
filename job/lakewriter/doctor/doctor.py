"""Run all probes of a pipeline: access first, then objects, sources and catalogs, which build on it."""

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import requests

from lakewriter.aws import Clients, require_trusted, resolve
from lakewriter.doctor.attached_policies import KeyProbes, PolicyProbes
from lakewriter.doctor.glue_access import CatalogProbes
from lakewriter.doctor.identity import AccessProbes
from lakewriter.doctor.message_source import MessageProbes
from lakewriter.doctor.object_access import ObjectProbes
from lakewriter.doctor.probe import Finding, Probe, run_probes
from lakewriter.doctor.source_access import SourceProbes
from lakewriter.doctor.surroundings import LakeProbes
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.lineage.sender import INSTALL, is_installed
from lakewriter.naming import ControlKeys
from lakewriter.source.request import SparkFactory
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.lineage import LOG, Lineage
from lakewriter.spec.specification import Spec


def _read_clock() -> datetime:
    return datetime.now(UTC)


def run_checks(
    spec: Spec,
    clients: Clients,
    *,
    deployment: Deployment | None = None,
    refusal: SpecInvalidError | None = None,
    spark: SparkFactory | None = None,
    now: Callable[[], datetime] = _read_clock,
) -> tuple[Finding, ...]:
    """Run every probe and return the findings; the pipeline is fit to run if none has ``failed``.

    With ``deployment``, the attached policies are compared with those that it needs; ``refusal`` is what synth would
    refuse of it; with ``spark``, the sources are looked at.
    """
    keys, mark = ControlKeys(spec.access.prefix, spec.pipeline), uuid.uuid4().hex
    access, objects = AccessProbes(clients, now), ObjectProbes(clients, keys, mark, spec.roots)
    lake, catalog = (
        LakeProbes(spec, clients, keys, now, sources=spark is None),
        CatalogProbes(spec, clients, mark, access.gate),
    )
    messages = MessageProbes(spec, deployment, look=spark is not None)
    try:
        probes = [] if refusal is None else [Probe("deployment", partial(_list_refused, refusal))]
        probes += [*access.list_probes(), *objects.list_probes(), *lake.list_probes(), *messages.list_probes()]
        probes += [*catalog.list_probes(), *_list_iceberg_probes(spec, clients, access.gate, deployment)]
        probes += LineageProbes(spec.lineage).list_probes()
        if deployment is not None:
            probes += PolicyProbes(spec, deployment, clients, access.gate).list_probes()
            probes += KeyProbes(spec, deployment).list_probes()
        if spark is not None:
            probes += SourceProbes(spec, deployment, spark).list_probes()
        return tuple(run_probes(probes))
    finally:
        objects.clear_up()


def _list_refused(refusal: SpecInvalidError) -> Iterator[Finding]:
    for problem in refusal.problems:
        yield Finding("deployment", "failed", problem, "Correct the file: synth refuses it too.", refusal.code)


def _list_iceberg_probes(spec: Spec, clients: Clients, gate: str, deployment: Deployment | None) -> list[Probe]:
    if not spec.iceberg:
        return []
    # Imported here, since PyIceberg takes a second to import and most pipelines have no Iceberg table.
    from lakewriter.doctor.iceberg_access import IcebergProbes

    return IcebergProbes(spec, clients, gate, (deployment or Deployment()).unreferenced_days).list_probes()


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
            require_trusted(settings.api_key, "lineage.api_key", settings.to)
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
