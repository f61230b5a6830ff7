"""List what is in a bundle, for audits: a software bill of materials in CycloneDX's JSON.

https://cyclonedx.org/docs/1.6/json/
"""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from infra.bundle.manifest import Manifest

NAME: Final = "sbom.json"


def write_sbom(folder: Path, manifest: Manifest) -> Path:
    """Write the bill beside the bundle's files and return its path; the same bundle has the same serial number."""
    path = folder / NAME
    outputter = make_outputter(make_bom(manifest), OutputFormat.JSON, SchemaVersion.V1_6)
    path.write_text(outputter.output_as_string(indent=1) + "\n", "utf-8")
    return path


def make_bom(manifest: Manifest) -> Bom:
    """Make the bill: the job at its release, and every package of the archives, which depend on no architecture."""
    job = Component(
        name="lakewriter",
        version=manifest.version,
        type=ComponentType.APPLICATION,
        purl=PackageURL("pypi", name="lakewriter", version=manifest.version, qualifiers=_list_qualifiers(manifest)),
        bom_ref="lakewriter",
    )
    packages = list(_list_packages(manifest))
    serial = uuid.uuid5(uuid.NAMESPACE_URL, manifest.model_dump_json())
    bom = Bom(components=packages, serial_number=serial, metadata=BomMetaData(component=job))
    bom.register_dependency(job, packages)
    return bom


def _list_qualifiers(manifest: Manifest) -> dict[str, str]:
    return {"vcs_revision": manifest.commit} if manifest.commit else {}


def _list_packages(manifest: Manifest) -> Iterator[Component]:
    licences = LicenseFactory()
    packages = {
        (name, version): archive.licences.get(name, "")
        for archive in manifest.dependencies.values()
        for name, version in archive.packages.items()
    }
    for (name, version), licence in sorted(packages.items()):
        yield Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            purl=PackageURL("pypi", name=name.lower().replace("_", "-"), version=version),
            licenses=[licences.make_from_string(licence)] if licence else [],
            bom_ref=f"{name}=={version}",
        )
