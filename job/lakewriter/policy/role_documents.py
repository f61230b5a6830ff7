"""The permissions of every role on a destination, one document for each service."""

from collections.abc import Callable
from enum import StrEnum

from lakewriter.policy import glue_statements as glue
from lakewriter.policy import s3_statements as storage
from lakewriter.policy.arns import Arns
from lakewriter.policy.checkpoint import checkpoint, place_of
from lakewriter.policy.secrets import assume_role, secrets
from lakewriter.policy.sources import sources
from lakewriter.policy.statements import Document, Statement, document
from lakewriter.policy.vendor import documented
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.trust import Trust

__all__ = ["Document", "Who", "documents", "who_of"]

Named = dict[str, list[Statement]]


class Who(StrEnum):
    """For whom a document is."""

    JOB = "job"
    """The role EMR Serverless runs the job with."""
    LOADER = "loader"
    """A role that a job takes at the destination: ``iam_role_arn``, and entries of ``trust`` with ``access: load``."""
    VENDOR = "vendor"
    """A party that writes files of its own beside the job's."""
    CATALOG = "catalog"
    """Snowflake Open Catalog."""
    READER = "reader"
    """Snowflake's compute, and entries of ``trust`` with ``access: read``."""


def who_of(trust: Trust) -> Who:
    """What an entry of ``trust`` gets."""
    return {"write": Who.VENDOR, "read": Who.READER, "load": Who.LOADER}[trust.access]


def documents(spec: Spec, deployment: Deployment, who: Who, arns: Arns) -> dict[str, Document]:
    """Documents by name, in this order, those left out that would be empty: ``S3``, ``Control``, ``Glue``, ``Kms``,
    ``AssumeRole``, ``Secrets``, ``Sources``, ``Checkpoint``.

    ``Control`` keeps a vendor with its own documents (``vendor_verbatim``) out of the job's records; elsewhere ``S3``
    does. ``SPEC_INVALID`` where the bucket's key is not known, or the vendor has no documents.
    """
    makers: dict[Who, Callable[[Spec, Deployment, Arns], Named]] = {
        Who.JOB: _job,
        Who.LOADER: _loader,
        Who.VENDOR: _vendor,
        Who.CATALOG: _catalog,
        Who.READER: _reader,
    }
    found = makers[who](spec, deployment, arns)
    return {name: document(statements) for name, statements in found.items() if statements}


def _job(spec: Spec, deployment: Deployment, arns: Arns) -> Named:
    """With a role to take, or keys to sign with, what is needed at the destination is theirs."""
    if spec.access.access_key_id:
        at_destination: Named = {}
    elif spec.access.role_arn:
        at_destination = {"AssumeRole": assume_role(spec)}
    else:
        at_destination = _loader(spec, deployment, arns)
    return {
        **at_destination,
        "Secrets": secrets(spec, arns),
        "Sources": sources(spec, deployment, arns),
        "Checkpoint": _checkpoint(spec, deployment, arns, has_key="Kms" in at_destination),
    }


def _checkpoint(spec: Spec, deployment: Deployment, arns: Arns, *, has_key: bool) -> list[Statement]:
    """In the destination's bucket it is under that bucket's key."""
    place, statements = place_of(spec), checkpoint(spec, deployment, arns)
    if not statements or has_key or place is None or place[0] != spec.access.bucket:
        return statements
    return [*statements, *storage.encryption(spec, deployment, arns, writes=True)]


def _loader(spec: Spec, deployment: Deployment, arns: Arns) -> Named:
    tables = glue.loader(spec, arns, new_databases=not deployment.existing.databases)
    return {
        "S3": storage.loader(spec, arns),
        "Glue": _with_lake_formation(tables, deployment),
        "Kms": storage.encryption(spec, deployment, arns, writes=True),
    }


def _vendor(spec: Spec, deployment: Deployment, arns: Arns) -> Named:
    key = storage.encryption(spec, deployment, arns, writes=True)
    if deployment.vendor_verbatim:
        own = documented(spec, arns)
        return {"S3": own["S3"], "Control": [storage.control_denied(spec, arns)], "Glue": own["Glue"], "Kms": key}
    tables = glue.vendor(spec, arns, reset=deployment.allow_reset)
    return {"S3": storage.vendor(spec, arns), "Glue": _with_lake_formation(tables, deployment), "Kms": key}


def _catalog(spec: Spec, deployment: Deployment, arns: Arns) -> Named:
    return {"S3": storage.catalog(spec, arns), "Kms": storage.encryption(spec, deployment, arns, writes=True)}


def _reader(spec: Spec, deployment: Deployment, arns: Arns) -> Named:
    return {
        "S3": storage.reader(spec, arns),
        "Glue": _with_lake_formation(glue.reader(spec, arns), deployment),
        "Kms": storage.encryption(spec, deployment, arns, writes=False),
    }


def _with_lake_formation(tables: list[Statement], deployment: Deployment) -> list[Statement]:
    return [*tables, glue.data_access()] if tables and deployment.lake_formation else tables
