"""Find the kind of server that a JDBC URL names. Refuse a URL of no such server: Spark would guess its SQL."""

import difflib
import re
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.source.databases.database_server import Server
from lakewriter.source.databases.embedded import H2, Derby, DerbyClient, Other
from lakewriter.source.databases.mysql import Mariadb, Mysql
from lakewriter.source.databases.oracle import Oracle
from lakewriter.source.databases.postgresql import Postgresql
from lakewriter.source.databases.sqlserver import Sqlserver

SERVERS: Final = (Postgresql(), Mysql(), Mariadb(), Sqlserver(), Oracle(), DerbyClient(), Derby(), H2())
"""The servers in the order in which their URLs are compared; the first match counts."""
_SCHEME: Final = re.compile(r"(?:jdbc:)?[A-Za-z0-9+.-]*:?")


def find_server(url: str, quote: str | None = None, table: str = "") -> Server:
    """Return the kind of server of a URL. With ``quote``, any other database is accepted.
    ``table`` is named in messages if it is not blank.

    Raise ``SPEC_INVALID`` for other URLs. The message does not show the whole URL, which may hold a password.
    """
    for server in SERVERS:
        if re.match(server.url, url, re.IGNORECASE):
            return server
    if quote is not None:
        return Other(quote)
    scheme = (_SCHEME.match(url) or [""])[0]
    urls = [server.url for server in SERVERS]
    near = difflib.get_close_matches(scheme.lower(), urls, 1, 0.85)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(dict.fromkeys(urls))}"
    named = f"table {table!r}: " if table else ""
    raise SpecInvalidError(
        f"{named}read.options.url begins with {scheme!r}, which is not a database that is known here; {hint}",
        remedy=""
        if near
        else "For another one, read.jdbc: {quote: '\"'} says what it quotes names with; its values are "
        "then what its driver and Spark make of them.",
    )
