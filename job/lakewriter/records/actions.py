"""Define catalog actions: what a load asks of its catalog, as an intent stores it. Each kind of catalog has a class."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field

from lakewriter.control_object import ControlObject, sparse
from lakewriter.naming import name_generation
from lakewriter.spec.catalogs import EVERYTHING, Abilities, IcebergService


def dump_part(value: Any) -> Any:
    """Return the fields of a model of lake.yaml, to be parsed as the intent's class, which allows further fields."""
    return dict(value) if isinstance(value, BaseModel) else value


class _Action(ControlObject):
    """What a load asks of its catalog. Callers use these methods; they never test the class of an action."""

    keeps_versions: ClassVar[bool] = False
    """Whether the catalog keeps the table's earlier versions, so that their files must stay."""
    takes_statistics: ClassVar[bool] = False
    """Whether the catalog stores the column bounds of every file."""

    @property
    def name(self) -> tuple[str, str] | None:
        """The names of the table's database and of the table in the catalog; None without a catalog."""
        return None

    @property
    def server(self) -> str | None:
        """The URL of the catalog's server; None where it is Glue, or there is none."""
        return None

    @property
    def partition_column(self) -> str | None:
        """The partition column, which readers see in addition to the columns of the files; None where there is none."""
        return None

    def list_columns(self) -> tuple[tuple[str, str], ...] | None:
        """Return the columns with the catalog's types; None where only the files define them."""
        return None

    def find_location(self) -> str | None:
        """Return the table's URI in the catalog; None without a catalog."""
        return None

    def find_data_location(self) -> str | None:
        """Return the table's URI where the catalog decides it; None where the layout does."""
        return None

    def find_bucket(self, bucket: str) -> str:
        """Return the bucket of the table's files; ``bucket`` is the destination's."""
        return bucket

    @property
    def abilities(self) -> Abilities:
        """Return what that bucket does."""
        return EVERYTHING

    def find_listed_prefix(self, bucket: str, planned: str | None) -> str | None:
        """Return the key prefix that readers list; None where a catalog names every file. ``planned`` is the layout's
        prefix."""
        return None

    def find_partition(self) -> tuple[str, str] | None:
        """Return value and URI of the partition that the load adds; None for a load that adds none."""
        return None

    def without_partition(self) -> Self:
        """Return the action of a load without rows, which creates the table and adds no partition."""
        return self

    def at_generation(self, number: int) -> Self:
        """Return the action of a table whose readers see this generation of its files."""
        return self


class FilesAction(_Action):
    """No catalog: a load is published once its files are complete."""

    kind: Literal["none"] = "none"

    def find_listed_prefix(self, bucket: str, planned: str | None) -> str | None:
        """See ``_Action``."""
        return planned


class Projection(ControlObject):
    """The rule by which Athena computes a table's partitions by date; ``value`` is the partition of the load's files.

    ``format`` is Java's, ``template`` the location with ``${KEY}`` in place of a value.
    https://docs.aws.amazon.com/athena/latest/ug/partition-projection-supported-types.html
    """

    value: str
    format: str
    unit: Literal["DAYS", "HOURS"]
    template: str


class GlueAction(_Action):
    """A Hive-style table in Glue as this load needs it; names are in lower case, types are Glue's.

    ``partition`` is the value of ``partition_key``, None for a load that adds no partition. ``strategy`` is the
    pipeline's ``partition_strategy``, blank where it is not known. The ``location`` of a refreshed table is the folder
    of one generation, and ``root`` is then the URI of the table's folder. A table that is appended to has no ``root``.
    With ``projection`` Athena computes the partitions, and ``partition`` may be None because none is added.
    """

    kind: Literal["glue"] = "glue"
    database: str
    database_location: str
    table: str
    location: str
    columns: tuple[tuple[str, str], ...]
    partition_key: str | None
    strategy: str = ""
    compression: str | None = sparse(None)
    """The codec of the files, None for gzip."""
    partition: str | None
    partition_location: str | None
    root: str | None = sparse(None)
    projection: Projection | None = sparse(None)

    @property
    def name(self) -> tuple[str, str]:
        """See ``_Action``."""
        return self.database, self.table

    @property
    def partition_column(self) -> str | None:
        """See ``_Action``."""
        return self.partition_key

    def list_columns(self) -> tuple[tuple[str, str], ...]:
        """See ``_Action``."""
        return self.columns

    def find_location(self) -> str:
        """See ``_Action``."""
        return self.location

    def find_listed_prefix(self, bucket: str, planned: str | None) -> str:
        """See ``_Action``."""
        return f"{self.location.removeprefix(f's3://{bucket}/')}/"

    def find_partition(self) -> tuple[str, str] | None:
        """Return value and URI of the partition that the load adds; None for a load that adds none."""
        return None if self.partition is None else (self.partition, str(self.partition_location))

    def without_partition(self) -> Self:
        """Return the action of a load without rows, which creates the table and adds no partition."""
        return self.model_copy(update={"partition": None, "partition_location": None})

    def at_generation(self, number: int) -> Self:
        """Return the action of a table whose readers see this generation of its files."""
        return self.model_copy(update={"location": f"{self.root}/{name_generation(number)}"})


class RenamedColumn(ControlObject):
    """A column of an Iceberg table that the load's commit gives another name."""

    field_id: int
    before: str
    after: str


class IcebergAction(_Action):
    """An Iceberg table; ``uuid``, ``schema_id``, ``spec_id``, ``sequence`` and ``renamed`` are set when it is prepared
    for the load.

    The load's files have that schema, with the names of ``renamed``, and that partition spec. The load's snapshot has
    the sequence number ``sequence`` or a higher one; 0 for a table of format version 1, which has none. A table that is
    not there yet is made with ``format_version``.
    """

    keeps_versions: ClassVar[bool] = True
    takes_statistics: ClassVar[bool] = True

    kind: Literal["iceberg"] = "iceberg"
    service: IcebergService
    namespace: str
    table: str
    location: str
    uuid: str = ""
    schema_id: int = 0
    spec_id: int = 0
    sequence: int = 0
    renamed: tuple[RenamedColumn, ...] = sparse(())
    format_version: int = sparse(2)

    @property
    def name(self) -> tuple[str, str]:
        """See ``_Action``."""
        return self.namespace, self.table

    @property
    def server(self) -> str | None:
        """See ``_Action``."""
        return self.service.server

    def find_location(self) -> str:
        """See ``_Action``."""
        return self.location

    def find_data_location(self) -> str:
        """See ``_Action``."""
        return self.location

    def find_bucket(self, bucket: str) -> str:
        """See ``_Action``; the destination's for a table that is not there yet."""
        made = self.location.partition("://")[2].partition("/")[0] if self.service.makes_buckets else ""
        return made or bucket

    @property
    def abilities(self) -> Abilities:
        """See ``_Action``."""
        return self.service.abilities


CatalogAction = Annotated[FilesAction | GlueAction | IcebergAction, Field(discriminator="kind")]
