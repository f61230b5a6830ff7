"""Describe a dialect in one object: all that the rest of the package has to know of one vendor's destinations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from lakewriter.dialects.common.destination import Destination
from lakewriter.dialects.common.foreign_files import ForeignFile
from lakewriter.dialects.common.form import FormField
from lakewriter.dialects.common.problems import find_model, list_keys
from lakewriter.dialects.common.row_rule_keys import BadRowEntry, ContractEntry
from lakewriter.dialects.common.source_files import Location
from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.common.yaml_text import Document
from lakewriter.spec.model import Model
from lakewriter.spec.pairs import Refusal, name_mode
from lakewriter.spec.specification import Limits, Spec
from lakewriter.spec.table_spec import Mode
from lakewriter.spec.vendor_policy import VendorPolicy

D = TypeVar("D", bound=Destination)

ForeignFiles = Sequence[ForeignFile]
ReadFiles = Callable[[Document, ForeignFiles], tuple[Document, tuple[str, ...]]]
"""Puts the content of the files that a lake.yaml names in place of their names; also gives warnings. It leaves
documents of other dialects alone. The second argument has the vendors' files that may be given by mistake."""


@dataclass(frozen=True)
class CheckedFile(Generic[D]):
    """A lake.yaml whose keys are checked, as a dialect translates it.

    ``tables`` have the pipeline's rules where they have none of their own; ``contract`` and ``on_bad_row`` are for
    tables that have no entry. Relative source paths start at ``root``, a program's own at ``folder``.
    """

    pipeline: str
    destination: D
    tables: tuple[TableEntry, ...]
    source: Any
    contract: ContractEntry
    on_bad_row: BadRowEntry | None
    root: str
    folder: str


@dataclass(frozen=True)
class Variant:
    """Another model for destinations of the type ``kind``: those that ``fits`` is true of, by the value of each key."""

    kind: str
    name: str
    fits: Callable[[Callable[[str], Any]], bool]
    model: type[Destination]

    @property
    def tag(self) -> str:
        """Tells the model apart from the others."""
        return f"{self.kind}, {self.name}"


@dataclass(frozen=True)
class Refusing(Generic[D]):
    """What tables of some destinations have no use for: ``name`` says of which, and ``fits`` is true of them."""

    name: str
    fits: Callable[[D], bool]
    settings: Mapping[str, Refusal]


@dataclass(frozen=True)
class TableForm:
    """Table entries with keys of their own: ``name`` is what messages call one; no plain entry has ``keys``."""

    name: str
    model: type[TableEntry]
    keys: tuple[str, ...]


def _list_keys(model: type[Model], steps: Location, destination: Mapping[str, Any]) -> list[str]:
    return list_keys(find_model(model, steps))


def _begin_destination(kind: str, bucket: str, region: str) -> dict[str, Any]:
    return {"type": kind, "s3_bucket_name": bucket, "bucket_region": region}


def _begin_table(name: str, schema: str) -> dict[str, Any]:
    return {"table": name, "schema": schema} if schema else {"table": name}


def _keep_limits(destination: Any, limits: Limits) -> Limits:
    return limits


@dataclass(frozen=True)
class Dialect(Generic[D]):
    """One vendor's destinations.

    types            for each ``destination.type`` its model
    variants         further models of a type, told apart by other keys
    translate        the neutral Spec
    form_fields      what the vendor's form asks for
    limits           the pipeline's limits, with what the file format asks for
    top_keys         which of the top-level keys that are not for every dialect it takes
    source           the model of ``source``, for a dialect that takes messages in place of tables
    table_form       its table entries, where they differ from the plain ones
    union_tags       for each key that tells the members of a union of its models apart, what it may hold
    keys_at          the keys that may be at a place inside the destination
    read_files       reads the files of the vendor's that a lake.yaml names
    refuses          the settings of tables that its destinations refuse
    foreign_files    the vendor's files, by which one that is given instead of another is recognised
    policies         for each type the policy document of its vendor's set-up page
    principals       for each type the name of its vendor in ``deployment.trust``
    first_keys       the keys that a new file of a type begins with, for a bucket and a region
    first_table_keys the keys that name a table in a new file, for its name and its schema
    """

    types: Mapping[str, type[Destination]]
    translate: Callable[[CheckedFile[D]], Spec]
    form_fields: Callable[[D], tuple[FormField, ...]]
    variants: tuple[Variant, ...] = ()
    limits: Callable[[D, Limits], Limits] = _keep_limits
    top_keys: frozenset[str] = frozenset()
    source: type[Model] | None = None
    table_form: TableForm | None = None
    union_tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys_at: Callable[[type[Model], Location, Mapping[str, Any]], list[str]] = _list_keys
    read_files: ReadFiles | None = None
    refuses: tuple[Refusing[D], ...] = ()
    foreign_files: tuple[ForeignFile, ...] = ()
    policies: Mapping[str, VendorPolicy] = field(default_factory=dict)
    principals: Mapping[str, str] = field(default_factory=dict)
    first_keys: Callable[[str, str, str], dict[str, Any]] = _begin_destination
    first_table_keys: Callable[[str, str], dict[str, Any]] = _begin_table

    def find_refused(self, destination: D) -> dict[str, Refusal]:
        """Return the settings that tables of this destination cannot have."""
        fitting = [refusing.settings for refusing in self.refuses if refusing.fits(destination)]
        return {setting: refusal for settings in reversed(fitting) for setting, refusal in settings.items()}

    @property
    def replaces(self) -> Mode | None:
        """The mode in which each load replaces a table, at once if that can be; None if loads only append."""
        refused = {setting for refusing in self.refuses for setting in refusing.settings}
        return next((mode for mode in (Mode.REFRESH, Mode.OVERWRITE) if name_mode(mode) not in refused), None)

    @property
    def models(self) -> dict[str, type[Destination]]:
        """Every model by its tag: the type, or the variant's."""
        return {**self.types, **{variant.tag: variant.model for variant in self.variants}}

    def find_tag(self, kind: str, value: Callable[[str], Any]) -> str:
        """Return the tag of the model that a destination of type ``kind`` has; ``value`` gives its keys' values."""
        chosen = (variant.tag for variant in self.variants if variant.kind == kind and variant.fits(value))
        return next(chosen, kind)
