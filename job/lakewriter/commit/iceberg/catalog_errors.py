"""Explain the errors of an Iceberg catalog: what each answer of a REST catalog means, and what to do about it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pydantic
import requests
from pyiceberg import exceptions
from pyiceberg.table import Table

from lakewriter import aws
from lakewriter.commit.iceberg.rest_services import find_remedies
from lakewriter.commit.iceberg.rest_session import ForeignAnswer
from lakewriter.errors import (
    CatalogFailedError,
    CatalogNotFoundError,
    CatalogRegionMismatchError,
    CatalogUnauthorizedError,
    EndpointUnreachableError,
    LakeError,
    NoAnswerError,
    SchemaIncompatibleError,
)
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import AnyRestService, IcebergService, RestService


@contextmanager
def explain_errors(service: IcebergService, clients: aws.Clients, doing: str) -> Iterator[None]:
    """Raise errors of the catalog, and of the services behind it, as errors a user can act on."""
    try:
        yield
    except (aws.ClientError, aws.BotoCoreError) as error:
        catalog = service if isinstance(service, RestService) else "glue"
        raise aws.explain(error, doing=f"{catalog}: {doing}", access=clients.access) from error
    except _REST_ERRORS as error:
        # Only an answer of the service has an HTTP status: the library raises the same class for what it cannot do
        # itself.
        is_limit = isinstance(error, NotImplementedError) and read_status(error) is None
        if is_limit or not isinstance(service, RestService):
            raise
        # A secret may have been changed, or a right granted: the next one who opens the catalog signs in anew.
        clients.catalogs.pop(service, None)
        if isinstance(error, requests.RequestException):
            raise _make_silence_error(service, doing, error, clients) from error
        clients.reached.add(service.uri)
        raise _make_rest_error(service, doing, error, clients) from error
    else:
        clients.reached.update([service.uri] if isinstance(service, RestService) else [])


@contextmanager
def explain_limits(doing: str) -> Iterator[None]:
    """Raise ``SCHEMA_INCOMPATIBLE`` for what PyIceberg cannot do with the table, or cannot read in it."""
    try:
        yield
    except _LIMITS as error:
        if isinstance(error, requests.RequestException) or read_status(error) is not None:
            raise
        raise SchemaIncompatibleError(
            f"PyIceberg cannot {doing} ({type(error).__name__}: {error}).",
            remedy="Change what it names back (columns, partition fields, properties), or load into another table.",
        ) from error


_LIMITS: Final = (
    ValueError,
    TypeError,
    LookupError,
    NotImplementedError,
    exceptions.NotInstalledError,
    exceptions.ResolveError,
    exceptions.ValidationError,
    exceptions.ValidationException,
)


def _make_silence_error(
    service: AnyRestService, doing: str, error: requests.RequestException, clients: aws.Clients
) -> LakeError:
    where = f"{service}: {doing}: {_shorten(error)}"
    # A proxy or a portal may answer in the catalog's place for a moment only.
    if isinstance(error, ForeignAnswer):
        return CatalogFailedError(where, remedy=_fill(_FOREIGN_REMEDY, service, clients))
    if not isinstance(error, _UNANSWERED):
        return CatalogNotFoundError(where, remedy=_fill(find_remedies(service).name, service, clients))
    if service.uri in clients.reached:
        remedy = "Check {endpoint} and the network path to it, and try again."
        return NoAnswerError(where, remedy=_fill(remedy, service, clients))
    return EndpointUnreachableError(
        f"{service} has not answered once ({doing}: {_shorten(error)}).",
        remedy=_fill("Check {endpoint}, and the network path from here: name, port, TLS, proxy.", service, clients),
    )


def _make_rest_error(service: AnyRestService, doing: str, error: Exception, clients: aws.Clients) -> LakeError:
    status, text, remedies = read_status(error), str(error), find_remedies(service)
    said = f"HTTP {status}: {_shorten(error)}" if status else _shorten(error)
    where = f"{service}: {doing}: {said}"
    if isinstance(error, pydantic.ValidationError):
        return CatalogFailedError(where, remedy=_fill(_FOREIGN_REMEDY, service, clients))
    if status not in _BUSY_STATUSES and _REGION.search(text):
        return CatalogRegionMismatchError(where, remedy=_fill(_REGION_REMEDY, service, clients))
    if isinstance(error, exceptions.OAuthError | exceptions.UnauthorizedError):
        remedy = remedies.role if "invalid_scope" in text else remedies.secret
        return CatalogUnauthorizedError(where, remedy=_fill(remedy, service, clients))
    if isinstance(error, exceptions.ForbiddenError):
        remedy = next((remedy for form, remedy in remedies.forbidden if form.search(text)), remedies.role)
        return CatalogUnauthorizedError(where, remedy=_fill(remedy, service, clients))
    if status in _PASSING_STATUSES or isinstance(error, exceptions.ServerError | exceptions.ServiceUnavailableError):
        return CatalogFailedError(where, remedy=_fill(_FAILED_REMEDY, service, clients))
    if status in _REFUSING_STATUSES and doing != CONNECT:
        return SchemaIncompatibleError(where, remedy=_REFUSED_REMEDY)
    return CatalogNotFoundError(where, remedy=_fill(remedies.name, service, clients))


def read_status(error: Exception) -> int | None:
    """Return the HTTP status of the answer for which the library raised ``error``; None if there was none."""
    cause = error.__cause__
    if not isinstance(cause, requests.HTTPError) or cause.response is None:
        return None
    return cause.response.status_code


def _shorten(error: Exception) -> str:
    """Return an error's text in one line; a page of HTML may be long."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _fill(remedy: str, service: AnyRestService, clients: aws.Clients) -> str:
    """Return a remedy with the fields of the catalog and the keys of the user's file."""
    names = clients.access.key_names
    return remedy.format(
        **dict(service),
        catalog=names.name_catalog(service.kind),
        in_glue=names.name_catalog("glue"),
        bucket=names.bucket,
        endpoint=find_remedies(service).endpoint,
    )


CONNECT: Final = "connect"
"""The step that opens a catalog: it requests a token and the catalog's configuration."""
_LONGEST: Final = 500
"""Characters of a catalog's answer in a message."""
_REST_ERRORS: Final = (
    requests.RequestException,
    exceptions.RESTError,
    exceptions.NoSuchNamespaceError,
    # An answer without the fields that the library reads; and HTTP 501.
    pydantic.ValidationError,
    NotImplementedError,
)
_BUSY_STATUSES: Final = frozenset({429, 503})
"""A region in the text of such an answer is the busy one, and no mismatch."""
_PASSING_STATUSES: Final = frozenset({408, 419, 425, 429})
"""Time is up for the request, for the token, for replayed data, or there were too many requests."""
_REFUSING_STATUSES: Final = frozenset({400, 422})
_REGION: Final = re.compile(r"\b(?:cross-)?regions?\b", re.IGNORECASE)
_UNANSWERED: Final = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
)
_FOREIGN_REMEDY: Final = (
    "Look for a proxy, a portal or a sign-in page between here and the catalog. Check that {endpoint} is the "
    "REST endpoint of the catalog that {catalog} chooses, not a page of its console; then run the same job id "
    "again."
)
_FAILED_REMEDY: Final = (
    "The catalog failed; nothing is known to be wrong with the file. Check the status page of the service behind "
    "{endpoint}, and run the same job id again."
)
_REFUSED_REMEDY: Final = (
    "Change what the catalog names: the table's columns, its partition, its name or its location; or load into another "
    "table."
)
_REGION_REMEDY: Final = (
    "Catalog and bucket must be in one region: set {bucket} to a bucket in the catalog's region, or {in_glue}."
)


def check_region(table: Table, service: IcebergService, access: Access) -> None:
    """Raise ``CATALOG_REGION_MISMATCH`` where the catalog names another region than the bucket's."""
    names = access.key_names
    region = table.io.properties.get("client.region") or table.io.properties.get("s3.region")
    if isinstance(service, RestService) and region not in (None, access.region):
        raise CatalogRegionMismatchError(
            f"{service} keeps its tables in {region!r}, and bucket {access.bucket!r} is in "
            f"{access.region!r}; they must be in one region.",
            remedy=f"Set {names.bucket} to a bucket in the catalog's region, or {names.name_catalog('glue')}.",
        )
