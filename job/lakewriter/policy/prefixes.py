"""List the key prefixes that the tables of a file and the records of its loads lie under."""

from lakewriter.naming import ControlKeys
from lakewriter.policy.arns import escape
from lakewriter.spec.specification import Spec, TableSpec


def list_table_prefixes(spec: Spec) -> tuple[str, ...]:
    """List the constant prefixes of the tables' keys: ``P/``, or ``P`` if a variable continues the last folder's name;
    blank for the whole bucket."""
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
    """List what the keys of a table begin with, and those of its quarantine."""
    return (find_key_prefix(table), *([f"{table.quarantine}/"] if table.quarantine is not None else []))


def list_table_names(spec: Spec) -> list[str]:
    """List the file's tables in the Data Catalog, with their quarantines, as the last parts of ARNs."""
    return [
        f"table/{escape(table.schema_name)}/{escape(name)}" for table in spec.tables for name in table.names_in_catalog
    ]


def find_key_prefix(table: TableSpec) -> str:
    """Find the prefix that all keys of a table share: its folder, or the constant part of it."""
    return f"{table.path}/" if table.layout.directory else table.layout.prefix
