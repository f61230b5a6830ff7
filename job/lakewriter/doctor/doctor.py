"""All probes of a pipeline, in the order in which a person would ask."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from lakewriter.aws import Clients
from lakewriter.doctor.attached_policies import PolicyProbes
from lakewriter.doctor.glue_access import CatalogProbes
from lakewriter.doctor.identity import AccessProbes
from lakewriter.doctor.message_source import MessageProbes
from lakewriter.doctor.object_access import ObjectProbes
from lakewriter.doctor.probe import Finding, Probe, run_probes
from lakewriter.doctor.surroundings import LakeProbes
from lakewriter.naming import ControlKeys
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec


def _utc_now() -> datetime:
    return datetime.now(UTC)


def run_checks(
    spec: Spec, clients: Clients, *, deployment: Deployment | None = None, now: Callable[[], datetime] = _utc_now
) -> tuple[Finding, ...]:
    """What every probe found; a pipeline is fit to run when none has ``failed``.

    With ``deployment`` the policies that are attached are compared with those it calls for.
    """
    keys, mark = ControlKeys(spec.access.prefix, spec.pipeline), uuid.uuid4().hex
    access, objects = AccessProbes(clients, now), ObjectProbes(clients, keys, mark, spec.roots)
    lake, catalog = LakeProbes(spec, clients, keys, now), CatalogProbes(spec, clients, mark, access.gate)
    messages = MessageProbes(spec, deployment)
    try:
        probes = [*access.probes(), *objects.probes(), *lake.probes(), *messages.probes()]
        probes += [*catalog.probes(), *_iceberg_probes(spec, clients, access.gate)]
        if deployment is not None:
            probes += PolicyProbes(spec, deployment, clients, access.gate).probes()
        return tuple(run_probes(probes))
    finally:
        objects.clear_up()


def _iceberg_probes(spec: Spec, clients: Clients, gate: str) -> list[Probe]:
    if not spec.iceberg:
        return []
    # Here, so that a command without an Iceberg table does not wait a second for PyIceberg.
    from lakewriter.doctor.iceberg_access import IcebergProbes

    return IcebergProbes(spec, clients, gate).probes()
