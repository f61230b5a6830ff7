"""Run all probes of a pipeline: access first, then objects, sources and catalogs, which build on it."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from lakewriter.aws import Clients
from lakewriter.doctor.attached_policies import PolicyProbes
from lakewriter.doctor.glue_access import CatalogProbes
from lakewriter.doctor.identity import AccessProbes
from lakewriter.doctor.lineage_target import LineageProbes
from lakewriter.doctor.message_source import MessageProbes
from lakewriter.doctor.object_access import ObjectProbes
from lakewriter.doctor.probe import Finding, Probe, run_probes
from lakewriter.doctor.source_access import SourceProbes
from lakewriter.doctor.surroundings import LakeProbes
from lakewriter.naming import ControlKeys
from lakewriter.run.prepare import SparkFactory
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec


def _read_clock() -> datetime:
    return datetime.now(UTC)


def run_checks(
    spec: Spec,
    clients: Clients,
    *,
    deployment: Deployment | None = None,
    spark: SparkFactory | None = None,
    now: Callable[[], datetime] = _read_clock,
) -> tuple[Finding, ...]:
    """Run every probe and return the findings; the pipeline is fit to run if none has ``failed``.

    With ``deployment``, the attached policies are compared with those that it needs; with ``spark``, the sources are
    looked at.
    """
    keys, mark = ControlKeys(spec.access.prefix, spec.pipeline), uuid.uuid4().hex
    access, objects = AccessProbes(clients, now), ObjectProbes(clients, keys, mark, spec.roots)
    lake, catalog = (
        LakeProbes(spec, clients, keys, now, sources=spark is None),
        CatalogProbes(spec, clients, mark, access.gate),
    )
    messages = MessageProbes(spec, deployment, look=spark is not None)
    try:
        probes = [*access.list_probes(), *objects.list_probes(), *lake.list_probes(), *messages.list_probes()]
        probes += [*catalog.list_probes(), *_list_iceberg_probes(spec, clients, access.gate)]
        probes += LineageProbes(spec.lineage).list_probes()
        if deployment is not None:
            probes += PolicyProbes(spec, deployment, clients, access.gate).list_probes()
        if spark is not None:
            probes += SourceProbes(spec, deployment, spark).list_probes()
        return tuple(run_probes(probes))
    finally:
        objects.clear_up()


def _list_iceberg_probes(spec: Spec, clients: Clients, gate: str) -> list[Probe]:
    if not spec.iceberg:
        return []
    # Imported here, since PyIceberg takes a second to import and most pipelines have no Iceberg table.
    from lakewriter.doctor.iceberg_access import IcebergProbes

    return IcebergProbes(spec, clients, gate).list_probes()
