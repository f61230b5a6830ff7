"""Run one SQL statement over a pipeline's tables on this machine, read-only.

DuckDB runs it where it is installed with its extensions: over the views that ``lakewriter queries`` prints. DataFusion,
which the package needs in any case, runs it over Iceberg tables, which PyIceberg hands to it as Arrow, deletes applied.
"""

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from datafusion import SessionContext, SQLOptions

from lakewriter import aws
from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.latest import read_latest
from lakewriter.errors import EndpointUnreachableError, SpecInvalidError
from lakewriter.operate import duckdb_sql
from lakewriter.operate.queries import LastLoads, write_views
from lakewriter.operate.sql_text import Engine, Query, name_views
from lakewriter.records.state import TableState
from lakewriter.run.placement import plan_iceberg_action
from lakewriter.spec.access import SecretText
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.installing import describe_install
from lakewriter.spec.specification import Spec

if TYPE_CHECKING:
    import duckdb

INSTALL: Final = f"DuckDB and its extensions come with {describe_install('sql')}"
_EXTENSIONS: Final = ("httpfs", "avro", "aws", "iceberg")
_PLACEHOLDER: Final = re.compile(r"<value of (\$\{[^{}]+\})>")
_UNKNOWN: Final = re.compile(r"'(<(?:[^'>]|'')+>)'")
"""What the printed statements leave to the person who runs them."""


@dataclass(frozen=True)
class Result:
    """The rows of a statement."""

    engine: str
    """The name and the version of the engine that ran it."""
    rows: pa.Table


class _Unavailable(Exception):  # noqa: N818 - an answer: the other engine is tried
    """DuckDB cannot be used here, for the reason in the text."""


def find_missing(spec: Spec, controls: Mapping[str, Control], states: Mapping[str, TableState]) -> LastLoads:
    """Return which tables have no committed load, and which ones have no file; loads and times are left out."""
    read_by_files = {} if spec.iceberg else controls
    has_files = call_all(_has_files, read_by_files.values())
    return LastLoads(
        unloaded={table_id for table_id, state in states.items() if not state.is_loaded},
        without_files={table_id for table_id, is_there in zip(read_by_files, has_files, strict=True) if not is_there},
    )


def _has_files(control: Control) -> bool:
    if control.latest is not None:
        latest = read_latest(control.store, control.latest)
        return latest is not None and bool(latest.files)
    layout = control.layout
    assert layout is not None
    matcher = layout.matcher()
    return any(matcher.fullmatch(entry.key) for entry in control.store.list_entries(layout.prefix))


def run_statement(
    spec: Spec, deployment: Deployment, stage: str | None, last: LastLoads, statement: str, clients: aws.Clients
) -> Result:
    """Run the statement; ``SPEC_INVALID`` for one that is wrong or that changes anything, and where no engine here
    reads the tables."""
    if spec.in_glue and not deployment.account:
        deployment = deployment.model_copy(update={"account": aws.find_account(spec.access)})
    if unread := next(filter(None, (duckdb_sql.describe_unread(spec, table) for table in spec.tables)), ""):
        raise SpecInvalidError(f"{unread}.", remedy="'lakewriter queries LAKE --engine spark' prints Spark's SQL.")
    try:
        return _run_in_duckdb(spec, write_views(spec, Engine.DUCKDB, last, deployment, stage), statement, clients)
    except _Unavailable as error:
        if not spec.iceberg:
            raise SpecInvalidError(
                f"no engine here reads the tables' files: {error}.", remedy=f"{INSTALL}; then call sql again."
            ) from error
    return _run_in_datafusion(spec, last, statement, clients)


def _run_in_duckdb(spec: Spec, views: Sequence[Query], statement: str, clients: aws.Clients) -> Result:
    try:
        import duckdb
    except ImportError as error:
        raise _Unavailable("DuckDB is not installed") from error
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in _EXTENSIONS:
            _load_extension(connection, name)
        try:
            for view in views:
                connection.execute(_fill_in(view, spec, clients))
        except duckdb.Error as error:
            raise EndpointUnreachableError(
                f"DuckDB cannot open the tables: {error}",
                remedy="'lakewriter status LAKE' says whether bucket and catalog answer.",
            ) from error
        # The statement may read, and change nothing that the views depend on.
        connection.execute("SET lock_configuration = true")
        try:
            (parsed,) = connection.extract_statements(statement)
            if parsed.type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
                raise _refuse(spec, f"{parsed.type.name} is no SELECT, and sql only reads")
            rows = connection.sql(statement).to_arrow_table()
        except ValueError as error:
            raise _refuse(spec, "expected exactly one statement") from error
        except duckdb.Error as error:
            raise _refuse(spec, str(error)) from error
    return Result(f"DuckDB {duckdb.__version__}", rows)


def _load_extension(connection: "duckdb.DuckDBPyConnection", name: str) -> None:
    """Load an extension: the one that a Python package has for this version, or else one that DuckDB has installed."""
    import duckdb

    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    folder = Path(package.origin).parent if package is not None and package.origin else Path()
    file = folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    try:
        connection.load_extension(str(file) if file.exists() else name)
    except duckdb.Error as error:
        reason = f"DuckDB {duckdb.__version__} has no extension {name!r} on this machine"
        raise _Unavailable(reason) from error


def _fill_in(query: Query, spec: Spec, clients: aws.Clients) -> str:
    """Return a printed statement with the values that it has placeholders for."""
    if query.title == duckdb_sql.S3_SECRET:
        keys = clients.read_keys()
        # Without keys DuckDB looks for some as the printed statement says.
        if keys:
            return duckdb_sql.write_s3_keys(spec, keys["access_key"], keys["secret_key"], keys.get("session_token"))
    region = spec.access.region
    sql = _PLACEHOLDER.sub(lambda match: aws.resolve(SecretText(match[1]), region=region).replace("'", "''"), query.sql)
    if unknown := _UNKNOWN.search(sql):
        name = unknown[1].replace("''", "'")
        raise SpecInvalidError(
            f"sql needs {name}, which neither the file nor AWS says.",
            remedy="Give a secret as a reference such as ${env:NAME}, and the account as deployment.account; or fill "
            "in by hand what 'lakewriter queries LAKE --engine duckdb' prints.",
        )
    return sql


def _run_in_datafusion(spec: Spec, last: LastLoads, statement: str, clients: aws.Clients) -> Result:
    import datafusion

    from lakewriter.commit.iceberg.iceberg_tables import IcebergTable

    context = SessionContext()
    for table, name in zip(spec.tables, name_views(spec), strict=True):
        action = plan_iceberg_action(spec, table)
        present = None if table.id in last.unloaded else IcebergTable(action, clients, "").load()
        if present is not None:
            context.from_arrow(present.scan().to_arrow(), name=name)
    reading = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    try:
        rows = context.sql_with_options(statement, reading).to_arrow_table()
    # DataFusion's own errors are plain exceptions of Rust.
    except Exception as error:
        raise _refuse(spec, str(error)) from error
    return Result(f"DataFusion {datafusion.__version__}", rows)


def _refuse(spec: Spec, reason: str) -> SpecInvalidError:
    names = ", ".join(name_views(spec))
    return SpecInvalidError(
        f"the statement was refused: {reason.removesuffix('.')}.",
        remedy=f"Expected one SELECT over these tables: {names}.",
    )
