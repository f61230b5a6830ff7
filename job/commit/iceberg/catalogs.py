"""The Iceberg catalogs: AWS Glue, and a REST catalog such as Snowflake Open Catalog; and what their errors mean."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import requests
from pyiceberg import exceptions
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate

from job import aws
from job.commit.iceberg.file_io import CLIENTS, LOAD, WRITTEN, ClientsFileIO
from job.errors import (
    CatalogNotFoundError,
    CatalogUnauthorizedError,
    CommitUnknownError,
    LakeError,
    NoAnswerError,
)
from job.spec import GlueService, IcebergService, RestService, SecretText

_FILE_IO: Final = f"{ClientsFileIO.__module__}.{ClientsFileIO.__qualname__}"

Requirements = tuple[TableRequirement, ...]
Updates = tuple[TableUpdate, ...]


class LostRace(Exception):  # noqa: N818 - it is an answer, not yet an error
    """The catalog says that another commit came first. A request sent twice is told so of itself."""


class UnclearCommit(Exception):  # noqa: N818 - it is an answer, not yet an error
    """The commit was applied, or it was not, or it will be."""


class _Glue(GlueCatalog):
    """Commits once: the library's own retries would append again what an answer that was lost had appended."""

    def commit_table(self, table: Table, requirements: Requirements, updates: Updates) -> CommitTableResponse:
        """See ``Catalog``."""
        try:
            return super().commit_table(table, requirements, updates)
        except exceptions.CommitFailedException as error:
            raise LostRace from error
        except aws.BotoCoreError as error:
            raise UnclearCommit from error
        except aws.ClientError as error:
            if aws.status_of(error) >= 500:
                raise UnclearCommit from error
            raise


class _Rest(RestCatalog):
    """See ``_Glue``."""

    def commit_table(self, table: Table, requirements: Requirements, updates: Updates) -> CommitTableResponse:
        """See ``Catalog``."""
        try:
            answer: CommitTableResponse = super().commit_table(table, requirements, updates)
        except exceptions.CommitFailedException as error:
            raise LostRace from error
        except (
            exceptions.CommitStateUnknownException,
            exceptions.ServiceUnavailableError,
            exceptions.ServerError,
            requests.ConnectionError,
            requests.Timeout,
        ) as error:
            raise UnclearCommit from error
        return answer


def open_catalog(service: IcebergService, clients: aws.Clients, load: str, written: list[str]) -> Catalog:
    """The catalog; all files it writes are marked with ``load``, and their locations are added to ``written``."""
    shared: dict[str, Any] = {"py-io-impl": _FILE_IO, CLIENTS: clients, LOAD: load, WRITTEN: written}
    if isinstance(service, GlueService):
        return _Glue("glue", client=clients.glue, **shared)
    region = clients.access.region
    credential = ":".join(
        aws.resolve(SecretText.parse(part), region=region) for part in (service.client_id, service.client_secret)
    )
    with explained(service, clients):
        return _Rest(
            "rest", uri=service.uri, warehouse=service.warehouse, credential=credential, scope=service.scope, **shared
        )


@contextmanager
def explained(service: IcebergService, clients: aws.Clients, doing: str = "connect") -> Iterator[None]:
    """Errors of the catalog, and of the services behind it, as errors a user can act on."""
    try:
        yield
    except (aws.ClientError, aws.BotoCoreError) as error:
        raise aws.explain(error, doing=f"glue: {doing}", access=clients.access) from error
    except (exceptions.RESTError, exceptions.NoSuchNamespaceError, requests.RequestException) as error:
        assert isinstance(service, RestService)
        raise _rest_error(service, doing, error) from error


def _rest_error(service: RestService, doing: str, error: Exception) -> LakeError:
    where = f"{service.uri}, catalog {service.warehouse!r}: {doing}: {error}"
    if isinstance(error, exceptions.UnauthorizedError | exceptions.OAuthError | exceptions.ForbiddenError):
        return CatalogUnauthorizedError(
            where,
            remedy="Check client_id and client_secret, that they were not rotated or revoked, and that the principal "
            f"role of scope {service.scope!r} exists and may use the catalog.",
        )
    if isinstance(error, requests.ConnectionError | requests.Timeout):
        return NoAnswerError(where, remedy="Check catalog_endpoint and the network, and try again.")
    if isinstance(error, exceptions.ServerError | exceptions.ServiceUnavailableError):
        return CommitUnknownError(where, remedy="Run the same job id again.")
    return CatalogNotFoundError(where, remedy="Check catalog_endpoint and catalog_name in Snowflake Open Catalog.")
