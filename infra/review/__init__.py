"""The page by which a deployment is reviewed: made of the synthesized templates, so that it says what they do."""

from pathlib import Path
from typing import Final

from infra.review import html, load, markdown, sections
from infra.review.assembly import acknowledgments, warnings
from infra.review.page import Page
from infra.review.permissions import identities, protected_resources, unattached
from infra.review.templates import Templates
from infra.settings import Settings

HTML: Final = "review.html"
MARKDOWN: Final = "review.md"


def write_review(folder: Path, settings: Settings) -> None:
    """``review.html`` and ``review.md`` beside the templates in ``folder``."""
    page = review(folder, settings)
    (folder / HTML).write_text(html.render(page), "utf-8")
    (folder / MARKDOWN).write_text(markdown.render(page), "utf-8")


def review(folder: Path, settings: Settings) -> Page:
    """What the assembly in ``folder`` says of this stage's stacks."""
    names = settings.stack_names
    templates = Templates.read(folder, names)
    holders = identities(templates)
    spec, spark = settings.spec, settings.deployment.spark
    databases = ", ".join(sorted({table.schema_name for table in spec.tables} - {""}))
    return Page(
        title=f"Lakewriter: pipeline {spec.pipeline}, stage {settings.stage}",
        summary=(
            ("Account and region", f"{settings.deployment.account or 'any account'}, {templates.region}"),
            ("Destination", ", ".join(f"s3://{spec.access.bucket}/{prefix}" for prefix in spec.prefixes)),
            ("Tables", f"{len(spec.tables)} in {databases}" if databases else str(len(spec.tables))),
            ("Stacks", ", ".join(names)),
            ("At most at a time", f"{spark.vcpus} vCPUs"),
            ("Stateful resources", "kept when the stack goes" if settings.protected else "go with the stack"),
        ),
        notes=(*spec.warnings, *warnings(folder, names)),
        sections=(
            sections.outside(holders),
            load.names(spec),
            load.schedule(settings),
            load.limits(settings, templates),
            sections.destroy(templates),
            sections.permissions((*holders, *unattached(templates)), templates),
            sections.resource_policies(protected_resources(templates)),
            sections.outputs(templates),
            sections.acknowledged(acknowledgments(folder, names)),
            sections.resources(templates),
        ),
    )
