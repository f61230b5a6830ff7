"""Name the table that a JDBC read has, by OpenLineage's naming of databases."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from lakewriter.lineage.facts import Dataset
from lakewriter.spec.table_spec import Read

_NAME: Final = re.compile(r'"((?:[^"]|"")+)"|`([^`]+)`|\[([^\]]+)\]|([^\W\d][\w$#]*)')
"""A name as databases quote it, or bare."""
_DATABASE: Final = re.compile(r"[;?&](?:databaseName|database)=([^;&]+)", re.IGNORECASE)
_INSTANCE: Final = re.compile(r"\\[^:]*")
_ORACLE: Final = re.compile(r"@(?://)?([\w.-]+)(?::(\d+))?[/:]([\w.$-]+)")


@dataclass(frozen=True)
class _Server:
    """A database server: its namespace, and the parts before a table's name that a read may leave out.

    A part is None where its default is not known. ``fold`` is what the server makes of a name without quotes.
    """

    namespace: str
    levels: tuple[str | None, ...]
    fold: Callable[[str], str] = str


def name_table(read: Read) -> Dataset | None:
    """Return the table of a JDBC read; None for a query, a URL that is a secret, or a database without a naming."""
    options = {name.lower(): value for name, value in read.options.items()}
    url, table = options.get("url"), options.get("dbtable")
    if not isinstance(url, str) or not isinstance(table, str):
        return None
    server = _read_server(url)
    parts = _split_name(table, server.fold) if server is not None else None
    return None if server is None or parts is None else _complete_name(server, parts)


def _read_server(url: str) -> _Server | None:
    for start, read in _SERVERS.items():
        if url.lower().startswith(f"jdbc:{start}"):
            return read(url[len("jdbc:") :])
    return None


def _split_name(table: str, fold: Callable[[str], str]) -> list[str] | None:
    """Return the parts of a name; None for a query."""
    parts, rest = [], table.strip()
    while match := _NAME.match(rest):
        *quoted, bare = match.groups()
        parts.append(fold(bare) if bare else next(filter(None, quoted)).replace('""', '"'))
        rest = rest[match.end() :]
        if not rest:
            return parts
        if not rest.startswith("."):
            return None
        rest = rest[1:]
    return None


def _complete_name(server: _Server, parts: list[str]) -> Dataset | None:
    """Return the name with its database, and its schema where there are any."""
    missing = len(server.levels) + 1 - len(parts)
    name = [*server.levels[: max(missing, 0)], *parts]
    return None if missing < 0 or None in name else Dataset(server.namespace, ".".join(map(str, name)))


def _read_hosted(url: str, namespace: str, port: int) -> tuple[str, str] | None:
    """Return namespace and database of a URL such as ``postgresql://host:5432/shop``, by the first of several hosts."""
    parts = urlsplit(url)
    host, _, given = parts.netloc.rpartition("@")[2].partition(",")[0].partition(":")
    database = parts.path.strip("/")
    return (f"{namespace}://{host}:{given or port}", database) if host and database else None


def _read_postgresql(url: str) -> _Server | None:
    named = _read_hosted(url, "postgres", 5432)
    return named and _Server(named[0], (named[1], "public"), str.lower)


def _read_mysql(url: str) -> _Server | None:
    named = _read_hosted(url, "mysql", 3306)
    return named and _Server(named[0], (named[1],))


def _read_sqlserver(url: str) -> _Server | None:
    host, _, port = _INSTANCE.sub("", url.partition("://")[2].partition(";")[0]).partition(":")
    database = _DATABASE.search(url)
    return _Server(f"mssql://{host}:{port or 1433}", (database[1], "dbo")) if host and database else None


def _read_oracle(url: str) -> _Server | None:
    """Read a server whose tables without a schema are the user's: the URL does not name the user."""
    service = _ORACLE.search(url)
    if service is None:
        return None
    return _Server(f"oracle://{service[1]}:{service[2] or 1521}", (service[3], None), str.upper)


_SERVERS: Final[Mapping[str, Callable[[str], _Server | None]]] = {
    "postgresql:": _read_postgresql,
    "mysql:": _read_mysql,
    "mariadb:": _read_mysql,
    "sqlserver:": _read_sqlserver,
    "oracle:": _read_oracle,
}
