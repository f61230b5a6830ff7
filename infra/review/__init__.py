"""Write a page to review a deployment by, from the synthesized templates themselves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from infra.bundle.manifest import read_manifest
from infra.review import html, load, markdown, sections
from infra.review.assembly import list_acknowledgments, list_warnings
from infra.review.changes import describe_changes, list_notable, read_deployed, require_stopped
from infra.review.page import Page
from infra.review.parties import describe_parties
from infra.review.permissions import list_hosts, list_identities, list_protected_resources, list_unattached
from infra.review.refusals import require_readable
from infra.review.templates import Templates
from infra.settings import Settings
from lakewriter.policy.prefixes import is_wide, list_written_keys
from lakewriter.spec.specification import Spec

HTML: Final = "review.html"
MARKDOWN: Final = "review.md"


def write_review(folder: Path, settings: Settings, *, suffix: str = "") -> None:
    """Write ``review.html`` and ``review.md`` beside the templates in ``folder``, with ``suffix`` behind ``review``."""
    page = make_page(folder, settings)
    for name, text in ((HTML, html.render(page)), (MARKDOWN, markdown.render(page))):
        (folder / name.replace(".", f"{suffix}.")).write_text(text, "utf-8")


def list_changes(folder: Path, settings: Settings) -> tuple[str, ...]:
    """List what nobody should overlook against the assembly of ``-c deployed``, guests included; nothing without one.

    Raises ``SPEC_INVALID`` if the deployed pipeline has another name, and the file does not say that it is stopped, or
    if the change leaves data behind of which the file says nothing.
    """
    if settings.deployed is None:
        return ()
    before, after = _read_both(settings.deployed, folder, settings)
    require_stopped(before, after, settings.deployment.stopped_stacks)
    require_readable(before, after, settings.deployment)
    return (*list_notable(before, after), *(line for guest in settings.guests for line in list_changes(folder, guest)))


def _read_both(deployed: Path, folder: Path, settings: Settings) -> tuple[Templates, Templates]:
    """Read this stage's stacks as they are deployed and as they are synthesised."""
    after = Templates.read(folder, settings.stack_names)
    return read_deployed(deployed, settings.stack_names, settings.other_stacks), after


def make_page(folder: Path, settings: Settings) -> Page:
    """Make the review of this stage's stacks from the assembly in ``folder``."""
    names = settings.stack_names
    templates = Templates.read(folder, names)
    holders = list_identities(templates)
    spec, spark = settings.spec, settings.deployment.spark
    databases = ", ".join(sorted({table.schema_name for table in spec.tables} - {""}))
    return Page(
        title=f"Lakewriter: pipeline {spec.pipeline}, stage {settings.stage}",
        summary=(
            ("Account and region", f"{settings.deployment.account or 'any account'}, {templates.region}"),
            ("Destination", ", ".join(f"s3://{spec.access.bucket}/{prefix}" for prefix in spec.prefixes)),
            ("Tables", f"{len(spec.tables)} in {databases}" if databases else str(len(spec.tables))),
            ("Stacks", ", ".join(names)),
            ("Release", _describe_release(settings)),
            ("At most at a time", f"{spark.vcpus} vCPUs"),
            ("Stateful resources", "kept when the stack goes" if settings.protected else "go with the stack"),
        ),
        notes=(*spec.warnings, *list_warnings(folder, names), *_list_wide(spec)),
        sections=(
            *([describe_changes(*_read_both(settings.deployed, folder, settings))] if settings.deployed else []),
            sections.describe_outsiders(holders, list_hosts(templates)),
            describe_parties(settings),
            load.describe_names(spec),
            load.describe_schedule(settings),
            load.describe_limits(settings, templates),
            sections.describe_destroy(templates),
            sections.describe_permissions((*holders, *list_unattached(templates)), templates),
            sections.describe_resource_policies(list_protected_resources(templates)),
            sections.describe_outputs(templates),
            sections.describe_acknowledged(list_acknowledgments(folder, names)),
            sections.describe_resources(templates),
        ),
    )


def _list_wide(spec: Spec) -> Iterator[str]:
    """Say where the job's role reaches more than its own."""
    if is_wide(spec):
        uris = ", ".join(f"s3://{spec.access.bucket}/{pattern}" for pattern in list_written_keys(spec))
        yield (
            f"The keys of {len(spec.tables)} tables do not fit into a policy of the job's role, so it may read, write "
            f"and delete what else lies in the folders above them: {uris}. Divide the tables over several files, or "
            "keep other data in folders of its own."
        )


def _describe_release(settings: Settings) -> str:
    manifest = read_manifest(settings.bundle)
    return f"{manifest.version}, commit {manifest.commit[:12]}" if manifest.commit else manifest.version
