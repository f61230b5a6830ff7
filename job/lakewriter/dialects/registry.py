"""The dialects: the one place that lists them, and what follows from all of them together."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final

from pydantic import Discriminator, Tag

from lakewriter.dialects.airbyte.dialect import DIALECT as AIRBYTE
from lakewriter.dialects.common.destination import Destination
from lakewriter.dialects.common.dialect import Dialect
from lakewriter.dialects.common.problems import list_words
from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.estuary.dialect import DIALECT as ESTUARY
from lakewriter.dialects.lakewriter_s3.dialect import DIALECT as LAKEWRITER
from lakewriter.dialects.supaflow.dialect import DIALECT as SUPAFLOW
from lakewriter.spec.model import Model

DIALECTS: Final[tuple[Dialect[Any], ...]] = (SUPAFLOW, AIRBYTE, ESTUARY, LAKEWRITER)

BY_TYPE: Final = {kind: dialect for dialect in DIALECTS for kind in dialect.types}
"""Maps each ``destination.type`` to its dialect."""
MODELS: Final = {tag: model for dialect in DIALECTS for tag, model in dialect.models.items()}
"""The models of destinations by their tags."""
FOREIGN_FILES: Final = tuple(file for dialect in DIALECTS for file in dialect.foreign_files)
VENDOR_STATEMENTS: Final = frozenset(
    statement.sid
    for dialect in DIALECTS
    for policy in dialect.policies.values()
    for statement in (*policy.s3, *policy.glue)
)
"""The names of statements that are vendors' own words."""
VENDOR_POLICIES: Final = {
    dialect.principals[kind]: policy
    for dialect in DIALECTS
    for kind, policy in dialect.policies.items()
    if kind in dialect.principals
}
"""Each vendor's policy document, of its last type: the one that lists the most."""
_PLAIN: Final = "a plain table"
_FORMS: Final = tuple(dialect.table_form for dialect in DIALECTS if dialect.table_form)
UNION_TAGS: Final[Mapping[str, Sequence[str]]] = {
    "": (*MODELS, _PLAIN, *(form.name for form in _FORMS)),
    **{key: tags for dialect in DIALECTS for key, tags in dialect.union_tags.items()},
}
"""Pydantic adds these tags to a problem's location for the members of its unions."""


def find_tag(value: Any) -> str | None:
    """Return the tag of a destination's model; None for a type that no dialect has."""

    def get_value(key: str) -> Any:
        return value.get(key) if isinstance(value, dict) else getattr(value, key, None)

    kind = get_value("type")
    dialect = BY_TYPE.get(kind) if isinstance(kind, str) else None
    return dialect.find_tag(kind, get_value) if dialect else None


def _find_form(value: Any) -> str:
    """Return the form that a table entry has, by its keys."""
    fits = (
        form.name
        for form in _FORMS
        if isinstance(value, form.model) or (isinstance(value, dict) and any(key in value for key in form.keys))
    )
    return next(fits, _PLAIN)


def _make_union(members: Mapping[str, type[Model]], which: Any) -> Any:
    """Return a union for pydantic, whose members ``which`` tells apart."""
    return Annotated[reduce(or_, (Annotated[model, Tag(tag)] for tag, model in members.items())), Discriminator(which)]


def make_destination_type() -> Any:
    """Return the type of ``destination``: the models of all dialects."""
    return _make_union(MODELS, find_tag)


def make_table_type() -> Any:
    """Return the type of an entry of ``tables``: plain ones, and those that a dialect has."""
    return _make_union({_PLAIN: TableEntry, **{form.name: form.model for form in _FORMS}}, _find_form)


def make_source_type() -> Any:
    """Make the type of ``source``: what a dialect takes in place of tables."""
    return reduce(or_, (dialect.source for dialect in DIALECTS if dialect.source))


def list_destinations_with(key: str) -> str:
    """Return ``the destinations 'a' and 'b'``: those that take a top-level key."""
    types = [kind for dialect in DIALECTS if key in dialect.top_keys for kind in dialect.types]
    return f"the destination{'s' if types[1:] else ''} {list_words(types).replace(' or ', ' and ')}"


def find_dialect(destination: Destination) -> Dialect[Any]:
    """Return the dialect whose settings ``destination`` is."""
    return next(dialect for dialect in DIALECTS if isinstance(destination, tuple(dialect.models.values())))
