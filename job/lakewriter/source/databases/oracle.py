"""Read the types of Oracle.

A DATE has a time of day, a bare NUMBER no scale, and the driver's zones are the session's: these types come as texts.
"""

import re
from collections.abc import Mapping
from typing import ClassVar, Final

import pyarrow as pa

from lakewriter.source.databases.database_server import (
    STRING,
    TIMESTAMP,
    Column,
    Moment,
    QueryRunner,
    Reading,
    Server,
    as_text,
    is_plain_table,
    make_decimal,
    write_number,
)

_BARE: Final = pa.decimal128(38, 10)
"""The type as which Spark reads a NUMBER without precision."""
_SECONDS: Final = "SYYYY-MM-DD HH24:MI:SS"
_LENGTH: Final = re.compile(r"\(\d+\)")


class Oracle(Server):
    """Oracle Database."""

    name = "Oracle"
    url = "jdbc:oracle:"
    driver = "oracle.jdbc.OracleDriver"
    sizes = "SELECT owner, table_name, num_rows FROM all_tables"
    shares_moments = True
    package = "com.oracle.database.jdbc:ojdbc11:23.8.0.25.04"
    native: ClassVar[Mapping[str, pa.DataType]] = {
        "binary_float": pa.float32(),
        "binary_double": pa.float64(),
        "boolean": pa.bool_(),
        **dict.fromkeys(("char", "varchar2", "nchar", "nvarchar2", "varchar", "clob", "nclob"), STRING),
        **dict.fromkeys(("raw", "blob"), pa.binary()),
    }

    def read(self, column: Column, c: str) -> Reading | None:
        # TIMESTAMP(6) WITH TIME ZONE
        kind = _LENGTH.sub("", column.type_name)
        if kind in self.native:
            return Reading(c, text=f"TO_CHAR({c})")
        number = f"TO_CHAR({c}, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')"
        if kind in ("number", "float"):
            is_bare = kind == "float" or not column.precision
            return as_text(number, _BARE if is_bare else make_decimal(column.precision, column.scale))
        # A year BC begins with a minus, and others with a blank.
        fine = f"TRIM(TO_CHAR({{}}, '{_SECONDS}.FF9'))"
        readings = {
            "date": as_text(f"TRIM(TO_CHAR({c}, '{_SECONDS}'))", TIMESTAMP),
            "timestamp": as_text(fine.format(c), TIMESTAMP),
            "timestamp with time zone": as_text(fine.format(f"SYS_EXTRACT_UTC({c})"), TIMESTAMP),
            "timestamp with local time zone": as_text(fine.format(f"SYS_EXTRACT_UTC({c})"), TIMESTAMP),
            "intervalym": as_text(f"TO_CHAR({c})"),
            "interval year to month": as_text(f"TO_CHAR({c})"),
            "intervalds": as_text(f"TO_CHAR({c})"),
            "interval day to second": as_text(f"TO_CHAR({c})"),
            "rowid": as_text(f"ROWIDTOCHAR({c})"),
            "json": as_text(f"JSON_SERIALIZE({c} RETURNING CLOB)"),
        }
        return readings.get(kind)

    def begin_moment(self, connection: QueryRunner, source: str) -> Moment | None:
        """Return the present system change number, at which tables are read. A query has no clause for it."""
        if not is_plain_table(source):
            return None
        ((number,),) = connection.read_rows("SELECT TO_CHAR(DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER) FROM DUAL")
        moment = Moment(suffix=f" AS OF SCN {number}")
        # A user who may select from a foreign table needs the right FLASHBACK too.
        connection.read_rows(f"SELECT 1 FROM {source}{moment.suffix} WHERE 1 = 0")
        return moment

    def write_value(self, column: Column, text: str) -> str:
        kind = _LENGTH.sub("", column.type_name)
        moment = f"TIMESTAMP '{text}'"
        if kind == "date":
            return f"CAST({moment} AS DATE)"
        if kind == "timestamp":
            return moment
        if kind.startswith("timestamp"):
            return f"TIMESTAMP '{text} +00:00'"
        return f"TO_{kind.upper()}('{write_number(text)}')" if kind.startswith("binary_") else write_number(text)

    def explain_refusal(self, column: Column, c: str) -> str:
        texts = {
            "bfile": f"a function that returns the file's content as BLOB from {c}",
            "xmltype": f"XMLSERIALIZE(CONTENT {c} AS CLOB)",
            "sys.xmltype": f"XMLSERIALIZE(CONTENT {c} AS CLOB)",
            "long": f"a copy of the table whose column is TO_LOB({c})",
            "long raw": f"a copy of the table whose column is TO_LOB({c})",
            "mdsys.sdo_geometry": f"SDO_UTIL.TO_WKTGEOMETRY({c})",
        }
        text = texts.get(column.type_name, f"TO_CHAR({c})")
        return f"Read it in a query, such as query: SELECT ..., {text} AS {c} FROM ...."
