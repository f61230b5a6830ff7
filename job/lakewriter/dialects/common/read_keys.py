"""The ``read`` of a table in lake.yaml: a Spark data source, or SQL over several of them."""

import codecs
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from lakewriter.dialects.common.column_entries import check_columns
from lakewriter.dialects.common.places import require_url
from lakewriter.dialects.common.problems import suggest_nearest
from lakewriter.spec.access import LOOPBACK, SecretText
from lakewriter.spec.model import FileModel, require_one
from lakewriter.spec.source_formats import EXCEL, FILE_FORMATS, FORMATS, OF_EVERY_FILE, find_format
from lakewriter.spec.table_spec import AvroValues, JdbcPartition, JdbcRules, Read

_BOUNDS: Final = ("partitioncolumn", "lowerbound", "upperbound", "numpartitions")
_TOKEN: Final = re.compile(
    r"""--[^\n]*|/\*.*?\*/|[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:``|[^`])*`|\w+|\S""",
    re.DOTALL,
)
"""A comment, a quoted text or name, a word or a sign of a statement in Spark's SQL."""
_FIRST_WORDS: Final = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_OPENED_BY: Final = {")": "(", "]": "["}
_ONE_PARTITION: Final = re.compile(r'\s*\{\s*"[^"]+"\s*:\s*\[\s*\d+\s*\]\s*\}\s*')
"""The ``assign`` of one partition of one topic."""
# A scheme has two letters at least: one is a drive, as in C:\\data.
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def _is_charset(name: str) -> bool:
    try:
        "".encode(codecs.lookup(name).name)
    except (LookupError, ValueError):
        return False
    return True


def find_sql_fault(sql: str) -> str | None:
    """Say what is wrong with a statement as far as it shows without Spark, whose start takes longer than a look."""
    tokens = [match for match in _TOKEN.finditer(sql) if not match[0].startswith(("--", "/*"))]
    words = [match[0] for match in tokens if match[0] not in {"(", ";"}]
    if not words or words[0].upper() not in _FIRST_WORDS:
        got = f"begins with {words[0]!r}" if words else "is empty"
        guess = suggest_nearest(words[0].upper(), _FIRST_WORDS, 0.75) if words else ""
        return f"the statement {got}; expected SELECT, or WITH before it{guess.removesuffix('?')}"
    opened: list[re.Match[str]] = []
    for match in tokens:
        sign = match[0]
        if sign in {"'", '"', "`"}:
            return f"{_locate(match)}: the quote {sign} is not closed"
        if sign in {"(", "["}:
            opened.append(match)
        elif sign in _OPENED_BY and (not opened or opened.pop()[0] != _OPENED_BY[sign]):
            return f"{_locate(match)}: {sign!r} closes nothing that is open"
        elif sign == ";" and match is not tokens[-1]:
            return f"{_locate(match)}: a second statement follows ';'; expected one"
    return f"{_locate(opened[-1])}: {opened[-1][0]!r} is not closed" if opened else None


def _locate(match: re.Match[str]) -> str:
    before = match.string[: match.start()]
    return f"line {before.count(chr(10)) + 1} of the statement, character {match.start() - before.rfind(chr(10))}"


class PartitionEntry(FileModel):
    """How a database's table is read by several tasks; the bounds are asked of the database."""

    column: str = Field(min_length=1)
    """A column of numbers, dates or timestamps, by whose ranges the table is split."""
    count: int = Field(ge=2, le=1000)
    """The number of ranges. Each is read by a task of its own, over a connection of its own."""


def _read_off(value: object) -> object:
    """Return YAML's ``off``, which is false there, as the word that it is."""
    return "off" if value is False else value


class JdbcEntry(FileModel):
    """How a database is read."""

    quote: Literal['"', "`", "["] | None = None
    """The character that quotes names in a database that Lakewriter does not know, such as ``'"'``. A probe confirms
    it. The values are then what the database's driver and Spark make of them."""
    reconcile: Annotated[Literal["counts", "columns", "off"], BeforeValidator(_read_off)] | None = None
    """Compares what was read with the database's own answer over the same rows, before anybody sees them: ``counts``
    compares the numbers of rows and of values in each column, ``columns`` their bounds and sums too. By default
    ``counts`` where the rows are those of a snapshot or up to a cursor."""
    lock: bool = False
    """Locks a table of MySQL or MariaDB against writing until the connections of ``partition`` have begun, so that all
    of them see one state. The user needs the right LOCK TABLES."""


_GLUE: Final = re.compile(r"arn:aws[a-z-]*:glue:|https?://glue\.|glue$", re.IGNORECASE)


class ValuesEntry(FileModel):
    """What the values of a topic's messages are written in, where that is not JSON."""

    type: Literal["avro"]
    """``avro`` for values that Confluent's Avro converter or serializer writes, or that have no id of a schema."""
    registry: str | None = None
    """The URL of a schema registry with Confluent's API, such as ``https://registry.acme.example:8081``: each value has
    the id of its schema before it, and each schema is asked for once. Give either this or ``schema``."""
    user: SecretText | None = None
    """The user, or the API key, that the registry asks for; needs ``password`` beside it."""
    password: SecretText | None = None
    """The user's password, or the API key's secret, by reference: ``${env:NAME}``, ``${ssm:NAME}`` or
    ``${secret:ARN}``."""
    schema_: str | None = Field(None, alias="schema", min_length=1)
    """A file with the schema of all values, such as ``s3://acme-schemas/orders.avsc``: the values are Avro with nothing
    before it. A relative path starts at ``source_root``."""

    @field_validator("registry")
    @classmethod
    def _one_of_confluents_api(cls, value: str | None) -> str | None:
        if value is not None and _GLUE.match(value):
            raise ValueError(
                "expected a registry with Confluent's API; values of the AWS Glue Schema Registry are not read. Have "
                "the connector write JSON with its schemas, or give the schema's file by 'schema'"
            )
        return value and require_url(value, "https://registry.acme.example:8081").rstrip("/")

    @model_validator(mode="after")
    def _one_way(self) -> "ValuesEntry":
        require_one(registry=self.registry is not None, schema=self.schema_ is not None)
        if (self.user is None) != (self.password is None) or (self.password is not None and self.registry is None):
            raise ValueError("'user' and 'password' sign in to 'registry'; expected all three, or neither of the two")
        if self.registry is not None and self.password is not None:
            parts = urlsplit(self.registry)
            if parts.scheme == "http" and parts.hostname not in LOOPBACK:
                raise ValueError(f"'password' would be sent to {self.registry!r} without TLS; expected https://")
        return self

    def make_values(self, root: str) -> AvroValues:
        """Return the neutral form, with a relative path made absolute from ``root``."""
        path = self.schema_ and make_absolute(self.schema_, root)
        return AvroValues(registry=self.registry, user=self.user, password=self.password, schema_path=path)


class ReadEntry(FileModel):
    """A ``spark.read``: format, path and options; or SQL over the reads in ``views``."""

    format: str | None = None
    """A Spark data source: ``csv``, ``json``, ``parquet``, ``orc``, ``jdbc``, ``kafka`` and others. Give either this or
    ``sql``."""
    path: str | tuple[str, ...] | None = None
    """A file, a folder, a pattern such as ``2027-*.csv``, or a list of them. Relative paths start at
    ``source_root``."""
    options: dict[str, SecretText | bool | int | float] = Field(default_factory=dict)
    """The data source's own options, such as ``header: true``. A value may be a secret by reference:
    ``${env:NAME}``."""
    columns: Annotated[str, AfterValidator(check_columns)] | None = None
    """The source's columns and types as Spark DDL, such as ``id BIGINT, name STRING``. Without it Spark finds them
    itself."""
    partition: PartitionEntry | None = None
    """Reads a database's table by several tasks at a time. Only for ``format: jdbc``."""
    jdbc: JdbcEntry | None = None
    """How a database is read. Only for ``format: jdbc``."""
    values: ValuesEntry | None = None
    """What the values of messages are written in, if not in JSON. Only for ``format: kafka`` with ``envelope:
    debezium``."""
    engine: Literal["spark"] | None = None
    """``spark`` lets Spark read a format that Lakewriter has a reader for, such as for options that this reader does
    not take. Values then have no guarantee, and bad rows cannot be kept apart."""
    sql: str | None = None
    """A SELECT over ``views``, for filters, joins and expressions. Give either this or ``format``."""
    views: "dict[str, ReadEntry]" = Field(default_factory=dict)
    """The sources that ``sql`` reads, each under the name that the statement has for it."""
    files: Literal["all", "new"] = "all"
    """``new`` reads only files that no earlier load of the table has read, such as the day's file in a folder. By
    default each load reads ``all`` files."""

    @field_validator("options")
    @classmethod
    def _require_known_options(cls, options: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if problem := find_unknown_option(info.data.get("format") or "", options):
            raise ValueError(problem)
        return options

    @model_validator(mode="after")
    def _one_way(self) -> "ReadEntry":
        require_one(format=self.format is not None, sql=self.sql is not None)
        if self.sql is None and self.views:
            raise ValueError("'views' are only for 'sql'")
        of_format = (self.path, self.options, self.columns, self.partition, self.jdbc, self.values, self.engine)
        if self.sql is not None and any(of_format):
            raise ValueError(
                "'path', 'options', 'columns', 'partition', 'jdbc', 'values' and 'engine' are for 'format'; beside "
                "'sql' they go into 'views'"
            )
        if self.values is not None and find_format(self.format).name != "kafka":
            raise ValueError("'values' is only for 'format: kafka'")
        if any(view.values is not None for view in self.views.values()):
            raise ValueError(
                "'values' is for a table's own read, and not for 'views': SQL sees a topic's values as bytes"
            )
        return self

    @field_validator("format")
    @classmethod
    def _no_typing_error(cls, value: str | None) -> str | None:
        if value is not None and value.lower() in EXCEL:
            raise ValueError(
                "Spark reads no Excel files: save each sheet as CSV or Parquet; or give 'excel', with a package of "
                "this name in spark.jars.packages"
            )
        # Spark loads any format by its name; one that is almost the name of a common one is that one.
        if value is not None and value.lower() not in FORMATS and (guess := suggest_nearest(value, FORMATS, 0.75)):
            raise ValueError(f"no format has this name{guess.removesuffix('?')}")
        return value

    @model_validator(mode="after")
    def _path_of_files(self) -> "ReadEntry":
        options = {name.lower() for name in self.options}
        if find_format(self.format).has_files and not self.path and not options & {"path", "paths"}:
            raise ValueError(
                f"'format: {self.format}' reads files; expected 'path' beside it, such as 'path: orders/*'"
            )
        return self

    @field_validator("sql")
    @classmethod
    def _one_statement(cls, value: str | None) -> str | None:
        if value is not None and (problem := find_sql_fault(value)):
            raise ValueError(problem)
        return value

    @model_validator(mode="after")
    def _charset_of_python(self) -> "ReadEntry":
        if self.engine is None and find_format(self.format).has_reader:
            for name, value in self.options.items():
                text = value.text if isinstance(value, SecretText) and not value.reference else None
                if text is not None and name.lower() in {"encoding", "charset"} and not _is_charset(text):
                    raise ValueError(
                        f"{name!r} is {text!r}; expected a charset that Python knows, such as UTF-8, "
                        "windows-1252 or UTF-16LE"
                    )
        return self

    @model_validator(mode="after")
    def _files_of_a_path(self) -> "ReadEntry":
        if self.files == "new" and not (find_format(self.format).has_files and self.path):
            raise ValueError(f"'files: new' is for a 'path' of {', '.join(sorted(FILE_FORMATS))} files")
        return self

    @model_validator(mode="after")
    def _partition_of_jdbc(self) -> "ReadEntry":
        is_jdbc = (self.format or "").lower() == "jdbc"
        if self.jdbc is not None and not is_jdbc:
            raise ValueError("'jdbc' is only for 'format: jdbc'")
        if self.jdbc is not None and self.jdbc.lock and self.partition is None:
            raise ValueError("'jdbc.lock' is for 'partition': one connection sees one moment by itself")
        if self.partition is None:
            return self
        if not is_jdbc:
            raise ValueError("'partition' is only for 'format: jdbc'")
        if given := [name for name in self.options if name.lower() in _BOUNDS]:
            raise ValueError(f"'partition' finds the bounds itself: leave out {given[0]!r}, or leave out 'partition'")
        return self

    @model_validator(mode="after")
    def _rows_of_jdbc(self) -> "ReadEntry":
        if find_format(self.format).name != "jdbc":
            return self
        options = {name.lower() for name in self.options}
        if "url" not in options:
            raise ValueError(
                "'format: jdbc' reads a database; expected 'options' with 'url', such as 'url: "
                "jdbc:postgresql://db.acme.example/shop'"
            )
        if len(options & {"dbtable", "query"}) != 1:
            got = "both" if {"dbtable", "query"} <= options else "neither"
            raise ValueError(
                "'format: jdbc' reads a table, 'dbtable: public.orders', or a statement, 'query: SELECT ...'; expected "
                f"one of them in 'options', got {got}"
            )
        return self

    @property
    def new_files(self) -> bool:
        """True if it, or one of its views, reads new files only."""
        return self.files == "new" or any(view.new_files for view in self.views.values())

    @property
    def has_partial_offsets(self) -> bool:
        """True if it, or one of its views, reads more than one partition of Kafka: each numbers its own messages."""
        if find_format(self.format).name != "kafka":
            return any(view.has_partial_offsets for view in self.views.values())
        assigned = next((value for name, value in self.options.items() if name.lower() == "assign"), None)
        text = assigned.text if isinstance(assigned, SecretText) else ""
        return _ONE_PARTITION.fullmatch(text) is None

    def make_read(self, root: str) -> Read:
        """Return the neutral form, with relative paths made absolute from ``root``."""
        paths = (self.path,) if isinstance(self.path, str) else self.path
        return Read(
            format=self.format,
            path=tuple(make_absolute(path, root) for path in paths) if paths else None,
            options={key: _to_option_text(value) for key, value in self.options.items()},
            columns=self.columns,
            partition=self.partition and JdbcPartition(column=self.partition.column, count=self.partition.count),
            jdbc=JdbcRules() if self.jdbc is None else JdbcRules(**self.jdbc.model_dump()),
            values=self.values and self.values.make_values(root),
            sql=self.sql,
            views={name: view.make_read(root) for name, view in self.views.items()},
            files=self.files,
            engine=self.engine,
        )


def list_option_notes(table: str, read: Read) -> Iterator[str]:
    """Yield notes on options of a table that nothing here knows."""
    for view in read.views.values():
        yield from list_option_notes(table, view)
    if note := note_unknown_options(read.format or "", read.options):
        yield f"table {table!r}: read.options {note}"
    loss = next((value for name, value in read.options.items() if name.lower() == "failondataloss"), "")
    if read.kind.name == "kafka" and (loss.text if isinstance(loss, SecretText) else loss).lower() == "false":
        yield (
            f"table {table!r}: read.options 'failOnDataLoss' is false: messages that the topic no longer has are left "
            "out. A continuous run says so when it begins, and a single load where its cursor is an offset."
        )
    if read.kind.name == "jdbc" and any(map(_names_zero_dates, (*read.options, read.options.get("url")))):
        yield (
            f"table {table!r}: read.options 'zeroDateTimeBehavior' changes nothing: dates are read as the server "
            "writes them, and a row with a zero date does not fit. Keep such rows apart by on_bad_row: {action: "
            "quarantine}, or give a query with NULLIF(column, 0)."
        )
    if read.engine is not None:
        yield (
            f"table {table!r}: Spark reads its files, as engine: {read.engine} asks; what its reader changes, leaves "
            "out or takes for null is not reported."
        )


def _names_zero_dates(text: SecretText | str | None) -> bool:
    """Return True for Connector/J's option for dates such as 0000-00-00, by itself or in a URL."""
    plain = text.text if isinstance(text, SecretText) else text or ""
    return "zerodatetimebehavior" in plain.lower()


def _to_option_text(value: SecretText | bool | int | float) -> SecretText | str:
    if isinstance(value, SecretText):
        return value if value.reference else value.text
    return str(value).lower() if isinstance(value, bool) else str(value)


def make_absolute(path: str, root: str) -> str:
    """Return ``path`` as it is if it is a URI or absolute, else below ``root``, a folder or a URI."""
    if _URI.match(path) or Path(path).is_absolute():
        return path
    return f"{root.rstrip('/')}/{path}" if _URI.match(root) else str(Path(root, path))


# What is no option of Spark's goes to the database's driver as a property of the connection. These are every driver's;
# MySQL has the numbered ones. https://spark.apache.org/docs/4.1.1/sql-data-sources-jdbc.html
_OF_DRIVERS: Final = frozenset({"user", "password", "password1", "password2", "password3"})
_JDBC: Final = "jdbc"
_KAFKA: Final = "kafka"
_OF_OTHERS: Final = {_JDBC: _OF_DRIVERS, _KAFKA: frozenset[str]()}
"""What formats other than files take beside their own options."""
_ALIKE: Final = 0.6
"""A word that is at least so similar to an option is taken for a misspelt one."""
_ALIKE_IN_JDBC: Final = 0.85
"""More, since what is no option of Spark's may be a property of the driver."""


def list_known_options(form: str) -> frozenset[str] | None:
    """Return the options of a format, None for one that is not Spark's own."""
    kind = find_format(form)
    if kind.options is None:
        return None
    return kind.options | _OF_OTHERS.get(kind.name, OF_EVERY_FILE)


def find_unknown_option(form: str, options: Iterable[str]) -> str | None:
    """Describe the first option that the format's reader does not know; None if it knows all.

    A name with a dot is a setting of Hadoop's, which Spark hands on.
    """
    valid = list_known_options(form)
    if valid is None:
        return None
    names = {name.lower(): name for name in valid}
    of_spark = names.keys() - _OF_DRIVERS
    least = _ALIKE_IN_JDBC if form.lower() == _JDBC else _ALIKE
    for option in options:
        if option.lower() in names or "." in option:
            continue
        nearest = difflib.get_close_matches(option.lower(), sorted(of_spark), 1, least)
        if nearest:
            return f"{option!r} is no option of {form}; did you mean {names[nearest[0]]!r}?"
        # A property of a database's driver may have any name.
        if form.lower() != _JDBC:
            return f"{option!r} is no option of {form}{_list_formats(option)}; leave it out."
    return None


def _list_formats(option: str) -> str:
    formats = [
        form.name for form in FORMATS.values() if option.lower() in {name.lower() for name in form.options or ()}
    ]
    return f"; it is one of {' and '.join(formats)}" if formats else ""


def note_unknown_options(form: str, options: Mapping[str, Any]) -> str | None:
    """Return a note on options that are handed on unseen; None where there are none."""
    valid = list_known_options(form)
    names = {name.lower() for name in valid or ()}
    # Those are properties of Kafka's consumer, which Spark hands to it.
    handed_on = ("kafka.",) if form.lower() == _KAFKA else ()
    unseen = ", ".join(
        repr(option) for option in options if option.lower() not in names and not option.lower().startswith(handed_on)
    )
    if not unseen:
        return None
    if form.lower() == _JDBC:
        return f"{unseen}: not known to Spark, handed to the database's driver as properties of the connection."
    reader = "Hadoop" if valid is not None else f"the reader of {form}"
    return f"{unseen}: not known here, handed to {reader} as given."
