"""Check that no two stages of a file write over each other, or create the same bucket or database."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import combinations, permutations, product

from lakewriter.deployable.staged_lake import StagedLake
from lakewriter.dialects.lake_yaml import Lake
from lakewriter.naming import join_key
from lakewriter.policy.parties import find_reach
from lakewriter.policy.prefixes import list_written_prefixes
from lakewriter.policy.table_bucket import makes_table_bucket


def check_stages(settings: StagedLake) -> Iterator[str]:
    """Refuse two stages that share a prefix, a bucket that both create, or a database."""
    lakes = {**settings.siblings, settings.stage: settings.lake}
    for (one, first), (other, second) in combinations(sorted(lakes.items()), 2):
        named = f"stages {one!r} and {other!r}"
        yield from (f"deployment.stages: {named} {problem}" for problem in _find_shared(first, second, other))
        for (name, lake), (open_name, open_lake) in permutations(((one, first), (other, second))):
            yield from (
                f"deployment.stages: {name!r} lets parties from outside write databases named {pattern}, and the "
                f"database {database!r} of {open_name!r} is one; expected stages out of each other's reach. Give "
                f"deployment.stages.{open_name} a {lake.spec.access.key_names.database_prefix} that makes other names, "
                f"or deployment.stages.{name} other parties."
                for pattern, database in find_reachable(lake, open_lake)
            )


def _find_shared(first: Lake, second: Lake, other: str) -> Iterator[str]:
    bucket = first.spec.access.bucket
    if bucket == second.spec.access.bucket:
        prefixes = product(list_written_prefixes(first.spec), list_written_prefixes(second.spec))
        if any(is_nested(one, two) for one, two in prefixes):
            key = None if second.spec.roots else second.spec.access.key_names.prefix
            yield (
                f"write to s3://{join_key(bucket, first.spec.access.prefix)} and "
                f"s3://{join_key(bucket, second.spec.access.prefix)}; expected prefixes of which none holds the "
                f"other. Give deployment.stages.{other} another {f'{key}, or another bucket' if key else 'bucket'}."
            )
        elif not (first.deployment.existing.bucket or second.deployment.existing.bucket):
            yield (
                f"both make the bucket {bucket!r}; expected at most one that does. "
                f"Set existing.bucket in deployment.stages.{other}, or give it another bucket."
            )
    one, two = (
        lake.spec.table_bucket if makes_table_bucket(lake.spec, lake.deployment) else None for lake in (first, second)
    )
    if one == two is not None:
        yield (
            f"both make the table bucket {two!r}; expected at most one that does. "
            f"Set existing.table_bucket in deployment.stages.{other}, or give it another table_bucket_arn."
        )
    if _has_other_catalog(first, second):
        return
    for database in sorted(list_databases(first) & list_databases(second)):
        yield (
            f"both write the {name_kind(second)} {database!r}; expected {name_kind(second).split()[-1]}s of their own. "
            f"Give deployment.stages.{other} another {second.spec.access.key_names.database}."
        )


def find_reachable(lake: Lake, other: Lake) -> Iterator[tuple[str, str]]:
    """Find the databases of ``other`` that parties of ``lake`` may write, each with the pattern that matches it."""
    if _has_other_catalog(lake, other):
        return
    parties = (party for _, party in lake.deployment.parties if party.access == "write")
    catalog = dict.fromkeys(path for party in parties for path in find_reach(lake.spec, party).catalog)
    patterns = [path.removeprefix("database/") for path in catalog if path.startswith("database/")]
    for database in sorted(list_databases(other) - list_databases(lake)):
        yield from ((pattern, database) for pattern in patterns if fnmatchcase(database, pattern))


def list_databases(lake: Lake) -> set[str]:
    """List the databases of the file's tables in the catalogs of AWS, or their namespaces in a table bucket."""
    has_databases = lake.spec.in_glue or lake.spec.table_bucket
    return {table.schema_name for table in lake.spec.tables} if has_databases else set()


def name_kind(lake: Lake) -> str:
    """Return what ``list_databases`` lists, in a word or two."""
    return "namespace" if lake.spec.table_bucket else "Glue database"


def is_nested(one: str, other: str) -> bool:
    """Return True if one of two prefixes holds the other."""
    outer, inner = sorted((one, other), key=len)
    return inner.startswith(outer)


def _has_other_catalog(first: Lake, second: Lake) -> bool:
    one, other = ((lake.deployment.account, lake.spec.access.region) for lake in (first, second))
    if first.spec.table_bucket != second.spec.table_bucket:
        return True
    return one[1] != other[1] or (one[0] != other[0] and None not in (one[0], other[0]))
