"""Draft the tables of a Flow specification: each binding needs a source of its documents."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from lakewriter.errors import SpecInvalidError
from lakewriter.init.draft import TableDraft
from lakewriter.init.vendor_files import VendorFile

_MISSING: Final = "put the path of this collection's documents here"


def draft_bindings(
    flow: VendorFile, files: Sequence[TableDraft], *, is_own: bool
) -> tuple[list[TableDraft], tuple[str, ...]]:
    """Draft an entry for each binding that is not disabled, with the files whose name is the collection's; and notes on
    files that no collection has the name of. ``is_own`` is true for the destination that takes the specification."""
    drafts, left = [], {table.name.lower(): table for table in files}
    for source in _list_sources(flow):
        table = left.pop(source.rpartition("/")[2].lower(), None)
        if table is None:
            read = {"format": "text", "path": f"{source.rpartition('/')[2]}.jsonl"}
            drafts.append(TableDraft(source, read, _MISSING, more={"documents": "value"}))
        elif table.read["format"] == "json":
            # A line is a document, of which the collection's own schema tells the columns.
            read = {"format": "text", "path": table.read["path"]}
            drafts.append(TableDraft(source, read, table.seen, more={"documents": "value"}))
        else:
            drafts.append(replace(table, name=source))
    notes = tuple(f"table {name!r} was left out: no binding has a collection of this name" for name in left)
    return [_fit_binding(draft, _find_key(flow, draft.name), is_own=is_own) for draft in drafts], notes


def _fit_binding(draft: TableDraft, key: tuple[str, ...], *, is_own: bool) -> TableDraft:
    """Leave key, fields and path to the specification, or take its key where the destination reads none."""
    if is_own:
        seen = f"{draft.seen}; its key is the collection's: {', '.join(key)}" if key else draft.seen
        return replace(draft, seen=seen, names={"source": draft.name}, key=((), "", False), cursor=None, columns={})
    columns = tuple(pointer.removeprefix("/") for pointer in key)
    evidence = ("the collection's own key", "/" not in "".join(columns)) if columns else draft.key[1:]
    return replace(draft, name=draft.name.rpartition("/")[2], key=(columns or draft.key[0], *evidence))


def _find_key(flow: VendorFile, source: str) -> tuple[str, ...]:
    collections = flow.content.get("collections")
    collection = collections.get(source) if isinstance(collections, dict) else None
    key = collection.get("key") if isinstance(collection, dict) else None
    return tuple(map(str, key)) if isinstance(key, list) else ()


def make_first_binding() -> TableDraft:
    """Make an entry to begin with, for an endpoint whose bindings nobody has given."""
    more = {"documents": "value", "collection": {"key": ["/id"]}}
    return TableDraft(
        "acmeCo/documents",
        {"format": "text", "path": "documents.jsonl"},
        "put your collection, the path of its documents and its key here",
        more=more,
    )


def _list_sources(flow: VendorFile) -> list[str]:
    materializations = flow.content.get("materializations")
    if not isinstance(materializations, dict) or len(materializations) != 1:
        count = len(materializations) if isinstance(materializations, dict) else 0
        raise SpecInvalidError(
            f"{flow.path} has {count} materializations, expected one.",
            remedy="Draft the file from one with a single materialization; destination.materialization names it later.",
        )
    (own,) = materializations.values()
    bindings = own.get("bindings") if isinstance(own, dict) else None
    sources = [_get_source(each) for each in bindings or () if isinstance(each, dict) and not each.get("disable")]
    if not sources or not all(isinstance(source, str) for source in sources):
        raise SpecInvalidError(f"{flow.path} has no bindings with a 'source'.", remedy="Give each collection one.")
    return [str(source) for source in sources]


def _get_source(binding: dict[str, Any]) -> Any:
    source = binding.get("source")
    return source.get("name") if isinstance(source, dict) else source
