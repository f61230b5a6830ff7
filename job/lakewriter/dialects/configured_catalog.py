"""Airbyte's configured catalog: the streams of a sync, and what is to be done with each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.problems import list_words
from lakewriter.dialects.common.read_keys import make_absolute
from lakewriter.dialects.common.tables import DELETED_FOR, require_names
from lakewriter.spec.change_events import CHANGE_ORDER
from lakewriter.spec.expectations import to_seconds
from lakewriter.spec.model import FileModel, require_one
from lakewriter.spec.stream import LogProperties, MessageSource, Stream
from lakewriter.spec.table_spec import Mode, Read, TableSource, TableSpec

MESSAGES: Final = "airbyte messages"
"""The ``format`` of tables that are read from messages."""

FILE_PATH: Final = "_airbyte_file_path"
"""The property that the vendor's connector adds to a record whose file it has copied."""

_LOG: Final = {
    "cursor": "_ab_cdc_cursor",
    "file": "_ab_cdc_log_file",
    "in_file": "_ab_cdc_log_pos",
    "lsn": "_ab_cdc_lsn",
}
"""The properties by which Airbyte's sources of change data say where in its database's log a change lies."""
_DELETED_AT: Final = "_ab_cdc_deleted_at"
"""The property that has a value where a change has deleted its row."""

_NONE: Final = "this destination has no other sync mode."
_SHOWN: Final = 5
"""Streams that a message names."""


class _Foreign(BaseModel):
    """An object of the platform's, which may grow keys that mean nothing here."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


def _replace_null(value: Any) -> Any:
    return () if value is None else value


class StreamDefinition(_Foreign):
    """A stream as its source describes it."""

    name: str = Field(min_length=1)
    namespace: str | None = None
    json_schema: dict[str, Any] = {}


class ConfiguredStream(_Foreign):
    """One stream of the catalog."""

    stream: StreamDefinition
    sync_mode: Literal["full_refresh", "incremental"] = "full_refresh"
    destination_sync_mode: str = "append"
    cursor_field: Annotated[tuple[str, ...], BeforeValidator(_replace_null)] = ()
    primary_key: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_replace_null)] = ()
    generation_id: int | None = Field(None, ge=0)
    minimum_generation_id: int | None = Field(None, ge=0)
    sync_id: int | None = Field(None, ge=0)
    include_files: bool | None = None

    @model_validator(mode="after")
    def _generations(self) -> "ConfiguredStream":
        lowest, current = self.minimum_generation_id, self.generation_id
        if lowest is not None and current is None:
            raise ValueError("'minimum_generation_id' needs 'generation_id' beside it")
        if lowest is not None and current is not None and lowest > current:
            raise ValueError(f"'minimum_generation_id' {lowest} is above 'generation_id' {current}")
        return self

    @property
    def overwrites(self) -> bool:
        """Return whether each sync replaces the rows of those before it."""
        return self.destination_sync_mode.startswith("overwrite")

    @property
    def lowest(self) -> int | None:
        """Return the lowest generation that stays, as the vendor's connector truncates.

        An overwrite deletes what is below its minimum, and without one all before its own generation. A stream that is
        appended to is truncated only if its minimum is its own generation: the platform asks so for a refresh that
        removes what was there. Below that, the minimum shows which generations the platform counts as current.
        """
        current, minimum = self.generation_id, self.minimum_generation_id
        if self.overwrites:
            return current if minimum is None else minimum
        return minimum if minimum is None or minimum == current else 0


class ConfiguredCatalog(_Foreign):
    """The whole catalog."""

    streams: tuple[ConfiguredStream, ...] = Field(min_length=1)

    def require_modes(self, modes: Collection[str], advice: Mapping[str, str]) -> None:
        """Raise a fault for modes that a destination does not have; ``advice`` says why, and what to ask for."""
        asked = dict.fromkeys(stream.destination_sync_mode for stream in self.streams)
        # One message for all streams: a client that chooses a mode by itself chooses the same one for most of them.
        if problems := [self._describe_mode(mode, modes, advice) for mode in asked if mode not in modes]:
            raise FaultError(("source", "catalog"), " ".join(problems))

    def _describe_mode(self, mode: str, modes: Collection[str], advice: Mapping[str, str]) -> str:
        names = [stream.stream.name for stream in self.streams if stream.destination_sync_mode == mode]
        shown = ", ".join(map(repr, names[:_SHOWN])) + (f" and {len(names) - _SHOWN} more" if names[_SHOWN:] else "")
        return (
            f"destination_sync_mode {mode!r} of {shown}: expected {list_words(list(modes))}; {advice.get(mode, _NONE)}"
        )


class SourceEntry(FileModel):
    """Messages of the Airbyte protocol, in place of ``tables``."""

    messages: str | tuple[str, ...] | None = None
    """The files of messages: paths, folders or ``s3://`` objects, or ``-`` for standard input. Give either this or
    ``command``."""
    command: tuple[str, ...] = ()
    """A connector that the job runs, as a list of words. It is given the last load's state as ``--state FILE``."""
    statuses: Literal["reported", "none"] = "reported"
    """``none`` for a source that never reports the status of its streams: the end of its messages is then the end of
    every stream."""
    environment: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()
    """Names of environment variables that the connector of ``command`` gets. Without them it gets only what any program
    needs, such as ``PATH`` and the proxies: none of the job's own credentials."""
    catalog: Annotated[ConfiguredCatalog, WithJsonSchema({"type": ["string", "object"]})]
    """Airbyte's configured catalog, which says what to do with each stream: the path of its file, or its content."""
    namespace_definition: Literal["source", "destination", "customformat"] = "source"
    """Where a stream's namespace comes from, as in an Airbyte connection."""
    namespace_format: str = "${SOURCE_NAMESPACE}"
    """The namespace for ``customformat``; ``${SOURCE_NAMESPACE}`` is the stream's own."""
    prefix: str = ""
    """Text before every stream's name."""
    names: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Written names of single properties, by stream: ``{public.users: {First-Name: first_name}}``. A column that is
    written already keeps its name."""

    @model_validator(mode="before")
    @classmethod
    def _no_package(cls, value: Any) -> Any:
        if isinstance(value, dict) and "package" in value:
            raise ValueError(
                "no load installs a connector, so there is no 'package'; install it where the loads run and give its "
                "program as 'command', or land what it prints in S3 and give that as 'messages'"
            )
        return value

    @field_validator("names")
    @classmethod
    def _names(cls, value: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        return {stream: require_names(names) for stream, names in value.items()}

    @model_validator(mode="after")
    def _one_way(self) -> "SourceEntry":
        require_one(messages=self.messages is not None, command=bool(self.command))
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the messages, none for a command."""
        if self.messages is None:
            return ()
        return (self.messages,) if isinstance(self.messages, str) else self.messages

    def locate(self, root: str, folder: str) -> MessageSource:
        """Return the neutral form; relative paths start at ``root``, and the command runs in ``folder``."""
        return MessageSource(
            paths=tuple(path if path == "-" else make_absolute(path, root) for path in self.paths),
            command=self.command,
            folder=folder,
            statuses=self.statuses,
            environment=self.environment,
        )

    def choose_namespace(self, stream: StreamDefinition) -> str:
        """Return the namespace in the destination, blank for none."""
        namespace = stream.namespace or ""
        if self.namespace_definition == "customformat":
            return self.namespace_format.replace("${SOURCE_NAMESPACE}", namespace)
        return namespace if self.namespace_definition == "source" else ""


def list_streams(source: SourceEntry, modes: Mapping[str, Mode]) -> Iterator[tuple[TableSource, Stream]]:
    """Yield every stream, and before it the source side of its table; ``modes`` are the destination's for the
    platform's."""
    for configured in source.catalog.streams:
        definition, mode = configured.stream, modes[configured.destination_sync_mode]
        is_merged = mode is Mode.MERGE
        properties = configured.stream.json_schema.get("properties") or {}
        log = LogProperties(**{part: name for part, name in _LOG.items() if is_merged and name in properties})
        order_by = CHANGE_ORDER[1:3] if log.numbers else (".".join(configured.cursor_field),)
        paths = (*configured.primary_key, *([] if log.numbers else [configured.cursor_field]))
        table = TableSource(
            source_schema=source.choose_namespace(definition),
            source_table=source.prefix + definition.name,
            read=Read(format=MESSAGES),
            primary_key=tuple(".".join(path) for path in configured.primary_key),
            mode=mode,
            order_by=tuple(name for name in order_by if is_merged and name),
            deleted_seconds=to_seconds(DELETED_FOR) if is_merged else 0.0,
        )
        yield (
            table,
            Stream(
                name=definition.name,
                namespace=definition.namespace,
                json_schema=_add_file_path(configured),
                sync_mode=configured.sync_mode,
                generation_id=configured.generation_id,
                minimum_generation_id=configured.lowest,
                sync_id=configured.sync_id,
                file_path=FILE_PATH if configured.include_files else None,
                overwrites=configured.overwrites,
                log=log if log.numbers else None,
                deleted_at=_DELETED_AT if is_merged and _DELETED_AT in properties else None,
                paths=tuple(path for path in paths if is_merged and len(path) > 1),
            ),
        )


def pin_names(tables: Sequence[TableSpec], names: Mapping[str, Mapping[str, str]]) -> list[TableSpec]:
    """Give the streams the names that lake.yaml pins, by the ids that commands and messages call them."""
    ids = [table.id for table in tables]
    for stream in names:
        if stream not in ids:
            raise FaultError(
                ("source", "names", stream),
                f"there is no stream {stream!r}; expected {list_words(ids)}.",
                remedy="Name it as lakewriter plan does.",
            )
    return [table.model_copy(update={"names": names[table.id]}) if table.id in names else table for table in tables]


def _add_file_path(configured: ConfiguredStream) -> dict[str, Any]:
    """Return the stream's schema, where it includes files with the property that says where one was copied to."""
    schema = configured.stream.json_schema
    if not configured.include_files:
        return schema
    return {**schema, "properties": {**schema.get("properties", {}), FILE_PATH: {"type": ["null", "string"]}}}
