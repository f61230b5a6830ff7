"""Find what each party from outside reaches, and refuse contracts over what is the job's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import CHECK_TABLE, join_key
from lakewriter.policy.arns import escape
from lakewriter.policy.prefixes import (
    find_key_prefix,
    list_key_prefixes,
    list_table_names,
    list_table_prefixes,
)
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec
from lakewriter.spec.trust import Party
from lakewriter.spec.vendor_policy import VendorPolicy

_BUDGET: Final = 5000
"""Characters of names in one denial; beyond it, folders and databases are named instead of their tables."""
_ARN: Final = 50
"""Characters of an ARN before its last part, with quotes and comma, in the partition with the longest names."""


@dataclass(frozen=True)
class Reach:
    """The tables and paths that a party reaches, and those among them that are the job's.

    ``starts`` begin its keys; a blank one is the whole bucket. ``catalog`` are paths of the Data Catalog, such as
    ``database/NAME``. A party that writes is denied ``job_starts`` and ``job_catalog``.
    """

    starts: tuple[str, ...]
    catalog: tuple[str, ...]
    job_starts: tuple[str, ...]
    job_catalog: tuple[str, ...]


def find_reach(spec: Spec, party: Party) -> Reach:
    """Find the reach of a party by its contract; without one, all under the destination's prefix.

    In the catalog it reaches ``databases``, and the file's own by ``tables`` or without a contract.
    """
    job = _list_job_starts(spec)
    if spec.table_bucket and not party.paths:
        starts, catalog = [], []
    elif party.tables:
        starts = [start for name in party.tables for start in _find_starts(spec, name)]
        catalog = [path for name in party.tables for path in _list_catalog_paths(name)]
    elif party.paths:
        starts = [_locate(spec, path) for path in party.paths]
        inside = [table.id for table in spec.tables if _is_below(find_key_prefix(table), starts)]
        catalog = [path for name in inside for path in _list_catalog_paths(name)] if party.access == "read" else []
    else:
        starts, catalog = list(list_table_prefixes(spec)), list_prefix_paths(spec)
    if not spec.in_glue or not _writes_catalog(spec, party):
        catalog = []
    databases = [path for name in party.databases for path in (f"database/{name}", f"table/{name}/*")]
    return Reach(
        starts=_drop_duplicates(starts),
        catalog=_drop_duplicates([*catalog, *databases]),
        job_starts=_shorten(job, [start.rstrip("/").rpartition("/")[0] + "/" for start in job], starts),
        job_catalog=_list_job_catalog(spec) if spec.in_glue else (),
    )


def _list_job_starts(spec: Spec) -> list[str]:
    """List what the keys of the job's files begin with; none does in a table bucket."""
    return [] if spec.table_bucket else [start for table in spec.tables for start in list_key_prefixes(table)]


def find_policy(spec: Spec, party: Party) -> VendorPolicy | None:
    """Find the document of the vendor's page that a party follows; None for one that follows none.

    A party that names no vendor follows the destination's, if that page is for principals and machines of one's own.
    """
    at_destination = spec.vendor_policy
    if party.follows is None:
        return at_destination if at_destination is not None and at_destination.self_hosted else None
    return spec.vendor_policies.get(party.follows) if party.follows else at_destination


def follows_destination(spec: Spec, party: Party) -> bool:
    """Return True if the party is of the destination's own vendor, and so knows the names of its databases."""
    return party.follows in {"", spec.vendor}


def _writes_catalog(spec: Spec, party: Party) -> bool:
    """Return True for a party that the file's own databases may be meant for: of ``access: read``, of the destination's
    vendor, or without a vendor's page and with ``tables``."""
    if party.access == "read" or follows_destination(spec, party):
        return True
    return party.follows is None and bool(party.tables)


def list_prefix_paths(spec: Spec) -> list[str]:
    """List ``P`` and ``P_*``, since ``P*`` also matches ``PQ``; without a prefix ``P``, the file's own databases."""
    prefix, below = escape(spec.database_prefix), escape(spec.databases_below)
    names = [prefix, f"{below}*"] if prefix else list(list_databases(spec))
    return [f"{kind}/{name}{below}" for kind, below in (("database", ""), ("table", "/*")) for name in names]


def list_databases(spec: Spec) -> Iterator[str]:
    """List the databases of the file's tables, escaped."""
    yield from dict.fromkeys(escape(table.schema_name) for table in spec.tables)


def require_separate(spec: Spec, deployment: Deployment) -> None:
    """Raise ``SPEC_INVALID`` if a party would write what is the job's, or nothing."""
    problems = list(find_overlaps(spec, deployment))
    if problems:
        raise SpecInvalidError("what parties from outside write is not apart from the job's:", problems=problems)


def find_overlaps(spec: Spec, deployment: Deployment) -> Iterator[str]:
    """Find parties that would write a table of the job's, or nothing; each problem by the party's key."""
    parties = [(f"deployment.trust.{number}", trust) for number, trust in enumerate(deployment.trust)]
    named: list[tuple[str, Party]] = [*parties, *([("deployment.iam_user", user)] if (user := deployment.user) else [])]
    for key, party in named:
        if party.access == "load":
            continue
        for name in party.tables:
            if not any(_find_starts(spec, name)) and not spec.table_bucket:
                yield (
                    f"{key}.tables: where {name!r} lies is not known: this file has no such table, and the "
                    "destination's folders do not follow from schema and table. Give 'paths', the party's folders."
                )
        if party.access == "write" and not deployment.vendor_verbatim:
            yield from _find_shared(spec, key, party)


def _find_shared(spec: Spec, key: str, party: Party) -> Iterator[str]:
    starts = find_reach(spec, party).starts
    if spec.table_bucket and not starts:
        yield (
            f"{key}: the tables lie in a table bucket, where no party writes. Give 'paths', its folders in "
            f"{spec.access.bucket!r}, or access: read or load."
        )
        return
    given = "tables" if party.tables else "paths"
    tables = () if spec.table_bucket else spec.tables
    for table, job in ((spec_table, start) for spec_table in tables for start in list_key_prefixes(spec_table)):
        if _is_below(job, starts) and (party.tables or party.paths):
            yield (
                f"{key}.{given}: table {table.id!r} of this file lies there, at {job!r}, and no party writes among the "
                f"job's own files. Give {given} of the party's own, or access: read."
            )
        elif any(start.startswith(job) for start in starts):
            yield (
                f"{key}: the party could write nothing, since table {table.id!r} of this file lies at "
                f"{job or 'the root of the bucket'!r} and what is the job's is refused to it. Give 'paths', folders "
                "apart from this file's tables, or access: read."
            )


def _find_starts(spec: Spec, name: str) -> Iterator[str]:
    """Find the key prefixes of ``schema.table`` or ``schema.*``: the file's own, or by the rule that they follow."""
    schema, _, last = name.rpartition(".")
    matching = [table for table in spec.tables if table.id == name or (last == "*" and table.schema_name == schema)]
    yield from map(find_key_prefix, matching)
    if schema and (last == "*" or not matching) and all(map(_has_regular_folder, spec.tables)):
        yield f"{join_key(spec.access.prefix, schema, '' if last == '*' else last)}/"


def _has_regular_folder(table: TableSpec) -> bool:
    """Return True if the table's folder ends with its schema and name, as the catalog has them."""
    return f"/{table.path}".endswith(f"/{join_key(table.schema_name, table.name)}") and bool(table.layout.directory)


def _list_catalog_paths(name: str) -> Iterator[str]:
    schema, _, table = name.rpartition(".")
    yield f"database/{escape(schema)}"
    yield f"table/{escape(schema)}/{'*' if table == '*' else escape(table)}"


def _list_job_catalog(spec: Spec) -> tuple[str, ...]:
    databases = list(list_databases(spec))
    exact = list_table_names(spec)
    checked = [f"table/{name}/{CHECK_TABLE}*" for name in databases]
    every = [f"table/{name}/*" for name in databases]
    tables = [*exact, *checked] if _fits([*databases, *exact, *checked]) else every
    return (*(f"database/{name}" for name in databases), *tables)


def _locate(spec: Spec, path: str) -> str:
    return f"{path.strip('/') if path.startswith('/') else join_key(spec.access.prefix, path.strip('/'))}/"


def _shorten(names: Sequence[str], above: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """Return ``names``, or the folders above them if they are too long for a policy and hold nothing of ``allowed``."""
    exact, folders = _drop_duplicates(names), _drop_duplicates(above)
    apart = not any(start.startswith(folder) for folder in folders for start in allowed if start)
    return exact if _fits(exact) or not apart else folders


def _fits(names: Sequence[str]) -> bool:
    return sum(len(name) + _ARN for name in names) <= _BUDGET


def _is_below(key: str, starts: Sequence[str]) -> bool:
    return any(key.startswith(start) for start in starts)


def _drop_duplicates(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
