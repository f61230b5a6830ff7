"""List the key prefixes that the tables of a file and the records of its loads lie under."""

import os.path
import re
from collections.abc import Iterator
from typing import Final

from lakewriter.naming import CONTROL_DIRECTORY, ControlKeys, join_key
from lakewriter.policy.arns import escape
from lakewriter.spec.key_template import Template
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_BUDGET: Final = 4500
"""Characters of ARNs in the statement of a managed policy, which IAM limits to 6,144 in all."""
_ARN: Final = 90
"""Characters of an ARN before its key, with quotes and comma: the longest partition and name of a bucket."""
_BROKEN: Final = re.compile(r"\$\{?[$*?]?$")
"""An escape that a common beginning ends in the middle of."""


def list_table_prefixes(spec: Spec) -> tuple[str, ...]:
    """List the constant prefixes of the tables' keys: ``P/``, or ``P`` if a variable continues the last folder's name;
    blank for the whole bucket. Tables in a table bucket have none."""
    if spec.table_bucket:
        return ()
    keys = [table.layout.prefix for table in spec.tables if not table.layout.directory]
    return tuple(
        f"{prefix}/" if prefix and all(key.startswith(f"{prefix}/") for key in keys) else prefix
        for prefix in spec.prefixes
    )


def list_written_prefixes(spec: Spec) -> tuple[str, ...]:
    """List the prefixes that a load writes under: those of its tables, and the control objects' if outside of them."""
    keys, prefixes = ControlKeys(spec.access.prefix, spec.pipeline), list_table_prefixes(spec)
    records = (f"{keys.root}/", keys.writers)
    return prefixes if records[0].startswith(prefixes) else (*prefixes, *records)


def list_key_prefixes(table: TableSpec) -> tuple[str, ...]:
    """List what the keys of a table begin with in a bucket, and those of its quarantine."""
    return (find_key_prefix(table), *([f"{table.quarantine}/"] if table.quarantine is not None else []))


def list_table_names(spec: Spec) -> list[str]:
    """List the file's tables in the Data Catalog, with their quarantines, as the last parts of ARNs."""
    return [
        f"table/{escape(table.schema_name)}/{escape(name)}" for table in spec.tables for name in table.names_in_catalog
    ]


def find_key_prefix(table: TableSpec) -> str:
    """Find the prefix that all keys of a table share: its folder, or the folder's constant part."""
    return f"{table.path}/" if table.layout.directory else table.layout.prefix


def list_written_keys(spec: Spec) -> list[str]:
    """List patterns, escaped, of the keys that loads read, write and delete: those of the tables by their templates,
    whatever writer they have, and the records'.

    Where that is more than a policy holds, the folders above the tables'; where these are too many, the prefixes of the
    file.
    """
    return next(_fit(spec))[1]


def is_wide(spec: Spec) -> bool:
    """Return True if the tables' keys do not fit into a policy, so that ``list_written_keys`` has folders of others
    too."""
    return next(_fit(spec))[0] > 0


def _fit(spec: Spec) -> Iterator[tuple[int, list[str]]]:
    keys = ControlKeys(spec.access.prefix, spec.pipeline)
    records = [f"{escape(keys.root)}/*", f"{escape(keys.writers)}*"]
    prefixes = [f"{escape(prefix)}*" for prefix in list_written_prefixes(spec)]
    tables = () if spec.table_bucket else spec.tables
    table_patterns = [pattern for table in tables for pattern in _list_table_keys(table)]
    if spec.service is not None and spec.service.chooses_location and spec.roots:
        table_patterns = prefixes
    above = [_find_folder_above(pattern, prefixes) for pattern in table_patterns]
    for number, patterns in enumerate(([*table_patterns, *records], [*above, *records])):
        distinct = _drop_covered(patterns)
        if sum(len(pattern) + _ARN for pattern in distinct) <= _BUDGET:
            yield number, distinct
    yield 2, prefixes


def _list_table_keys(table: TableSpec) -> Iterator[str]:
    """List patterns of the keys of a table, of its quarantine, and of the files that belong to its records."""
    layout = table.layout
    if layout.directory:
        yield f"{escape(find_key_prefix(table))}*"
    else:
        globs = [_escape_template(template) for template in (layout.template, *layout.variants)]
        # A key that is taken gets a suffix, and tables of earlier formats have other endings.
        common = os.path.commonprefix(globs)  # noqa: RUF071 - the characters that keys share, not their directories
        yield f"{_BROKEN.sub('', common)}*"
        yield f"{escape(join_key(layout.prefix.rpartition('/')[0], CONTROL_DIRECTORY, 'owners'))}/*"
        if layout.purged:
            yield f"{escape(layout.purged)}/*"
    if layout.folder is not None:
        yield f"{_escape_template(layout.folder)}/*"
    if table.quarantine is not None:
        yield f"{escape(table.quarantine)}/*"


def _escape_template(template: Template) -> str:
    return "".join(escape(part) if isinstance(part, str) else "*" for part in template.parts)


def _find_folder_above(pattern: str, prefixes: list[str]) -> str:
    """Find the folder above that of a pattern, within the prefixes of the file."""
    folder = pattern.partition("*")[0].rpartition("/")[0].rpartition("/")[0]
    above = f"{folder}/*"
    return above if folder and above.startswith(tuple(prefix[:-1] for prefix in prefixes)) else pattern


def _drop_covered(patterns: list[str]) -> list[str]:
    """Drop repetitions, and patterns below a whole folder of another one."""
    distinct = list(dict.fromkeys(patterns))
    folders = [pattern for pattern in distinct if pattern.find("*") == len(pattern) - 1]
    return [
        pattern
        for pattern in distinct
        if not any(pattern != folder and pattern.startswith(folder[:-1]) for folder in folders)
    ]
