"""Open an Iceberg catalog: AWS Glue, or a REST catalog such as Snowflake Open Catalog."""

import copy
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import pydantic
import requests
from pyiceberg import exceptions
from pyiceberg.catalog import TOKEN, Catalog
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.rest import AUDIENCE, CREDENTIAL, OAUTH2_SERVER_URI, RESOURCE, SCOPE, RestCatalog
from pyiceberg.catalog.rest.auth import AuthManager, NoopAuthManager
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSnapshotUpdate, RemoveSnapshotsUpdate, TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from lakewriter import aws
from lakewriter.commit.iceberg import format3
from lakewriter.commit.iceberg.catalog_errors import CONNECT, explain_errors, read_status
from lakewriter.commit.iceberg.file_io import CLIENTS, LOAD, WRITTEN, ClientsFileIO
from lakewriter.commit.iceberg.rest_services import SignIn, make_sign_in
from lakewriter.spec.catalogs import AnyRestService, GlueService, IcebergService

_FILE_IO: Final = f"{ClientsFileIO.__module__}.{ClientsFileIO.__qualname__}"

_MAKE_ADAPTER: Final = ":lakewriter.adapter"
"""The catalog property with the function that makes the ``CatalogAdapter`` of a session of the library."""

_SIGN_IN: Final = (OAUTH2_SERVER_URI, CREDENTIAL, TOKEN, SCOPE, AUDIENCE, RESOURCE)
"""The properties that a token depends on; a catalog's own configuration may override them."""

_SIGNED_IN_SECONDS: Final = 900.0
"""For how long a sign-in serves those who open the catalog: in a run of weeks its configuration may change."""

Requirements = tuple[TableRequirement, ...]
Updates = tuple[TableUpdate, ...]


class LostRace(Exception):  # noqa: N818 - it is an answer, not yet an error
    """The catalog says that another commit came first, that the table is gone, or that it takes no commit now.

    It also says so after a request that was sent twice and succeeded the first time.
    """


class UnclearCommit(Exception):  # noqa: N818 - it is an answer, not yet an error
    """The commit was applied, or it was not, or it will be."""


class _OwnFiles:
    """Reads and writes a table's files with the destination's clients, whatever FileIO the table's properties name."""

    properties: Properties

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        own_properties = {name: self.properties[name] for name in (CLIENTS, LOAD, WRITTEN)}
        return ClientsFileIO({**self.properties, **properties, **own_properties})


class _Glue(_OwnFiles, GlueCatalog):
    """Sends a commit once: after a lost answer the library's own retries would append the load again."""

    @staticmethod
    def _write_metadata(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
        format3.write_metadata(metadata, io, metadata_path)

    def _update_and_stage_table(
        self, current_table: Table | None, table_identifier: Identifier, requirements: Requirements, updates: Updates
    ) -> StagedTable:
        """See ``MetastoreCatalog``. A commit to another branch changes nothing that a load requires, but it has taken
        the load's sequence number, and ids for its rows."""
        for requirement in requirements:
            requirement.validate(current_table.metadata if current_table else None)
        taken = current_table.last_sequence_number if current_table and current_table.format_version > 1 else -1
        there = {snapshot.snapshot_id for snapshot in current_table.snapshots()} if current_table else set()
        expired = (set(update.snapshot_ids) for update in updates if isinstance(update, RemoveSnapshotsUpdate))
        # Another one has expired them: the library would call the table broken.
        # Rule expired-by-others
        if any(ids - there for ids in expired):
            raise LostRace
        added = (update.snapshot.sequence_number for update in updates if isinstance(update, AddSnapshotUpdate))
        # Rule sequence-not-taken
        if requirements and any((number or 0) <= taken for number in added):
            raise LostRace
        return super()._update_and_stage_table(current_table, table_identifier, requirements, updates)

    def commit_table(self, table: Table, requirements: Requirements, updates: Updates) -> CommitTableResponse:
        """See ``Catalog``."""
        try:
            # Rule iceberg-on-what-was-read
            return super().commit_table(table, requirements, updates)
        except (exceptions.CommitFailedException, exceptions.NoSuchTableError) as error:
            raise LostRace from error
        except aws.BotoCoreError as error:
            raise UnclearCommit from error
        except aws.ClientError as error:
            if aws.read_status(error) >= 500:
                raise UnclearCommit from error
            raise


class _Rest(_OwnFiles, RestCatalog):
    """See ``_Glue``. A token that has expired is renewed by the library."""

    _signed_in_by: tuple[str | None, ...] = ()

    def open_for(self, files: dict[str, Any]) -> Self:
        """Return the catalog with these properties, signed in by the token that this one has.

        Its connections are its own: the library writes the token of a table into the headers of a session, and a
        connection that nobody used while files were staged may be cut.
        """
        catalog = copy.copy(self)
        catalog.properties = {**self.properties, **files}
        catalog._session = catalog._create_session()
        return catalog

    def _create_legacy_oauth2_auth_manager(self, session: requests.Session) -> AuthManager:
        # Mounted here, since the library requests the first token as soon as it has a session, without a time-out.
        for scheme in ("https://", "http://"):
            session.mount(scheme, self.properties[_MAKE_ADAPTER]())
        if not {CREDENTIAL, TOKEN} & set(self.properties):
            # Without a token the library would send "Bearer None".
            return NoopAuthManager()
        given = tuple(self.properties.get(name) for name in _SIGN_IN)
        # The library asks for a token for each session, and has one session for the configuration alone.
        if self._auth_manager is None or given != self._signed_in_by:
            self._auth_manager, self._signed_in_by = super()._create_legacy_oauth2_auth_manager(session), given
        return self._auth_manager

    def _init_sigv4(self, session: requests.Session) -> None:
        """Change nothing, although the catalog's own configuration asks for it: the library would sign with the default
        chain's credentials, for any catalog, and without time-outs."""

    def commit_table(self, table: Table, requirements: Requirements, updates: Updates) -> CommitTableResponse:
        """See ``Catalog``."""
        try:
            answer: CommitTableResponse = super().commit_table(table, requirements, updates)
        # A catalog that answers TooManyRequests has not looked at the request.
        except (
            exceptions.CommitFailedException,
            exceptions.NoSuchTableError,
            exceptions.TooManyRequestsError,
        ) as error:
            raise LostRace from error
        except (
            exceptions.CommitStateUnknownException,
            exceptions.ServiceUnavailableError,
            exceptions.ServerError,
            requests.RequestException,
            # The answer has all fields, and the library cannot read one.
            pydantic.ValidationError,
        ) as error:
            raise UnclearCommit from error
        except exceptions.RESTError as error:
            match read_status(error):
                case requests.codes.request_timeout:
                    raise UnclearCommit from error
                case requests.codes.not_found:
                    raise LostRace from error
            raise
        return answer


class _SignedIn(NamedTuple):
    """A catalog, the properties with which one has signed in to it, and when."""

    catalog: _Rest
    properties: Mapping[str, str]
    since: float


def open_catalog(service: IcebergService, clients: aws.Clients, load: str, written: list[str]) -> Catalog:
    """Open the catalog. The files it writes name ``load`` in their metadata; their locations are put into
    ``written``."""
    shared: dict[str, Any] = {"py-io-impl": _FILE_IO, CLIENTS: clients, LOAD: load, WRITTEN: written}
    if isinstance(service, GlueService):
        return _Glue("glue", client=clients.glue, **shared)
    with explain_errors(service, clients, CONNECT):
        # Resolved each time, so that a secret that was changed is found.
        sign_in = make_sign_in(service, clients)
        held: _SignedIn | None = clients.catalogs.get(service)
        # Several threads may sign in at once: none waits for a catalog that does not answer another one.
        if held is None or held.properties != sign_in.properties or time.monotonic() - held.since > _SIGNED_IN_SECONDS:
            catalog = _sign_in(service, clients, sign_in)
            held = clients.catalogs[service] = _SignedIn(catalog, sign_in.properties, time.monotonic())
        return held.catalog.open_for(shared)


def _sign_in(service: AnyRestService, clients: aws.Clients, sign_in: SignIn) -> _Rest:
    # The library always asks for vended credentials; None removes that header.
    vends = service.vends_credentials and not clients.access.explicit
    headers = {} if vends else {"header.X-Iceberg-Access-Delegation": None}
    named = {"uri": service.uri, "warehouse": service.warehouse}
    given: dict[str, Any] = {**sign_in.properties, **headers, _MAKE_ADAPTER: sign_in.make_adapter}
    return _Rest("rest", **named, **given)
