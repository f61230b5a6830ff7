"""Write ``docs/reference.md`` and ``docs/reference/``: every key of a lake.yaml, its type, default and description.

scripts/reference
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lakewriter.dialects.common.destination import Destination
from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.descriptions import list_definitions
from lakewriter.dialects.lake_schema import make_lake_schema
from lakewriter.dialects.registry import BY_TYPE, DIALECTS, MODELS

FOLDER: Final = Path(__file__).parent
FIRST: Final = "reference.md"
OTHERS: Final = "reference"
TEMPLATE: Final = "reference.md.jinja"
TOP: Final = "Top of the file"
TAGS: Final = ("type", "format_type", "compression_type", "codec")
TYPES: Final = {"string": "text", "boolean": "true or false", "integer": "whole number", "number": "number"}
Schema = Mapping[str, Any]
Alternatives = tuple[tuple[str, str], ...]
"""The definitions of a mapping that may have one of several forms, each with what tells it from the others."""

SCHEMA: Final = make_lake_schema()
DEFINITIONS: Final[Mapping[str, Schema]] = {"": SCHEMA, **SCHEMA["$defs"]}
REQUIRED: Final = {
    # A vendor's file may have them, so that the schema cannot ask for them.
    model.__name__: [name for name, own in model.model_fields.items() if own.is_required()]
    for model in MODELS.values()
}


@dataclass
class Section:
    """A mapping of the file: where it may stand, and the forms that it may have."""

    title: str
    alternatives: Alternatives
    places: dict[str, None] = field(default_factory=dict)
    kinds: dict[str, None] = field(default_factory=dict)
    """The types of destination that have it; none for all of them."""
    page: str = FIRST

    @property
    def link(self) -> str:
        """As another section's table names it."""
        title = self.title or TOP
        return f"[{title.replace('destination, ', '')}]({self.page}#{make_anchor(title)})"

    @property
    def is_table_entry(self) -> bool:
        """True for the keys that the tables of some destinations have beside those of all tables."""
        return list(self.places) == ["tables"] and bool(self.kinds)

    def list_forms(self) -> dict[str, str]:
        """The forms with their descriptions, if there are several and each has a name."""
        forms = {label: DEFINITIONS[name].get("description", "") for label, name in self.alternatives}
        return forms if len(forms) > 1 and all(forms) else {}


@dataclass(frozen=True)
class Row:
    """What a table says of one key."""

    key: str
    kind: str
    default: str
    means: str


class Page:
    """The sections in the order of the file."""

    def __init__(self) -> None:
        self.sections: dict[Alternatives, Section] = {}

    def add(self, title: str, alternatives: Alternatives, place: str, kinds: Sequence[str] = ()) -> None:
        """Add the section of a mapping and those of the mappings inside it, or note where else it stands."""
        section = self.sections.get(alternatives)
        if section is None:
            section = self.sections[alternatives] = Section(title, alternatives)
        elif not section.kinds or set(kinds) <= set(section.kinds):
            section.places.setdefault(place)
            return
        section.places.setdefault(place)
        section.kinds.update(dict.fromkeys(kinds))
        for label, name in alternatives:
            for key, own in get_properties(name).items():
                inside = f"{place}.{key}" if place else key
                if inside in ("destination", "tables"):
                    self._add_forms(inside)
                    continue
                for inner in list_inner(own):
                    taken = any(other.title == inside and other.alternatives != inner for other in self.list_sections())
                    self.add(f"{inside}, {label}" if taken else inside, inner, inside, kinds)

    def list_sections(self) -> list[Section]:
        """The sections in their order."""
        return list(self.sections.values())

    def _add_forms(self, key: str) -> None:
        """The sections of ``destination`` or ``tables``: one for each type of destination where they differ."""
        for kind in BY_TYPE:
            names = list_definitions(kind)[key]
            forms = tuple((DEFINITIONS[name].get("title", "").partition(", ")[2], name) for name in names)
            title = key if names == [TableEntry.__name__] else f"{key}, {kind}"
            self.add(title, forms, key, [kind] if title != key else ())

    def describe_type(self, own: Schema) -> str:
        """The type of a value in words, with links to the mappings that it may be."""
        words = list(dict.fromkeys(self._describe_one(each) for each in list_values(own)))
        return (", or " if any(" or " in word for word in words) else " or ").join(words)

    def _describe_one(self, own: Schema) -> str:
        for inner in list_inner(own, deep=False):
            return self.sections[inner].link if inner in self.sections else "mapping"
        if "enum" in own:
            return ", ".join(show(value) for value in own["enum"])
        if own.get("type") == "array":
            return f"list of {self.describe_type(own['items'])}"
        if own.get("type") == "object":
            others = own.get("additionalProperties")
            return f"names, each with {self.describe_type(others)}" if isinstance(others, dict) else "mapping"
        return show(own["const"]) if "const" in own else TYPES[own["type"]] + describe_bounds(own)

    def make_rows(self, section: Section) -> dict[Row, list[str]]:
        """The rows of a section's table, each with the forms that it is for."""
        rows: dict[Row, list[str]] = {}
        for label, name in section.alternatives:
            for key, own in get_properties(name).items():
                if name != TableEntry.__name__ and own == get_properties(TableEntry.__name__).get(key):
                    # A destination's own kind of table entry: the keys of all tables have a section.
                    continue
                rows.setdefault(self._make_row(section, name, key, own), []).append(label)
        return dict(sorted(rows.items(), key=lambda item: rank(item[0])))

    def make_notes(self, section: Section) -> dict[Row, str]:
        """The rows of a section's table, each with the forms or destinations that alone have it."""
        rows = self.make_rows(section)
        if list(section.places) == [""]:
            return {row: list_destinations(row.key) for row in rows}
        return {row: name_forms(section, labels) for row, labels in rows.items()}

    def _make_row(self, section: Section, name: str, key: str, own: Schema) -> Row:
        forms = [get_properties(other).get(key, {}) for _, other in section.alternatives]
        if all("const" in form for form in forms):
            kind = ", ".join(dict.fromkeys(show(form["const"]) for form in forms))
            default = next((show(form["default"]) for form in forms if "default" in form), "required")
            return Row(key, kind, default, own["description"])
        required: Sequence[str] = REQUIRED.get(name) or DEFINITIONS[name].get("required", ())
        default = "required" if key in required else show(own["default"]) if "default" in own else ""
        return Row(key, self._describe_key(section, key, own), default, own["description"])

    def _describe_key(self, section: Section, key: str, own: Schema) -> str:
        if list(section.places) == [""] and key in ("destination", "tables"):
            forms = [each.link for each in self.sections.values() if list(each.places) == [key]]
            return f"{'one of' if key == 'destination' else 'list of'} {', '.join(forms)}"
        return self.describe_type(own)


def rank(row: Row) -> int:
    """What tells forms apart comes first, what every destination has last."""
    if row.key in TAGS:
        return 0
    return 2 if row.key in Destination.model_fields else 1


def get_properties(name: str) -> Mapping[str, Schema]:
    """The keys of a mapping, which may also have a short form."""
    forms = (DEFINITIONS[name], *DEFINITIONS[name].get("anyOf", ()))
    return next((form["properties"] for form in forms if "properties" in form), {})


def resolve(own: Schema) -> Schema:
    """A schema in place of a reference to it."""
    return DEFINITIONS[own["$ref"].rpartition("/")[2]] if "$ref" in own else own


def list_values(own: Schema) -> Iterator[Schema]:
    """The schemas of the values that a key may have, without null and blank."""
    if "anyOf" in own:
        for each in own["anyOf"]:
            yield from list_values(each)
    elif isinstance(own.get("type"), list):
        yield from ({**own, "type": kind} for kind in own["type"])
    elif own.get("type") == "null" or own.get("maxLength") == 0:
        return
    elif "$ref" in own and "properties" not in resolve(own):
        yield from list_values(resolve(own))
    else:
        yield own


def list_inner(own: Schema, *, deep: bool = True) -> Iterator[Alternatives]:
    """The mappings that a value may be; with ``deep`` also those in its lists and below names."""
    for each in list_values(own):
        if "$ref" in each:
            yield (("", each["$ref"].rpartition("/")[2]),)
        elif "oneOf" in each:
            names = [inner["$ref"].rpartition("/")[2] for inner in each["oneOf"]]
            yield tuple((find_tag(name), name) for name in names)
        elif "properties" in each:
            yield (("", next(name for name in DEFINITIONS if get_properties(name) == each["properties"])),)
        elif deep:
            for inner in (each.get("items"), each.get("additionalProperties")):
                yield from list_inner(inner) if isinstance(inner, dict) else ()


def find_tag(name: str) -> str:
    """What tells a form of a mapping from its others."""
    tags = (own["const"] for own in get_properties(name).values() if "const" in own)
    return str(next(tags))


def show(value: Any) -> str:
    """A value as YAML has it."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "`{" + ", ".join(f"{key}: {own}" for key, own in value.items()) + "}`"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{value}`" if value != "" else "blank"


def describe_bounds(own: Schema) -> str:
    """The least and the greatest number."""
    least, most = own.get("minimum"), own.get("maximum")
    if least is None and most is None:
        return ""
    return f", {least} to {most}" if least is not None and most is not None else f", from {least}"


def make_anchor(title: str) -> str:
    """The end of a link to a title, as GitHub makes it."""
    return re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-")


def list_destinations(key: str) -> str:
    """The destinations that take a key of the top."""
    if any(key in dialect.top_keys for dialect in DIALECTS):
        kinds = [kind for kind, dialect in BY_TYPE.items() if key in dialect.top_keys]
        return "only " + ", ".join(f"`{kind}`" for kind in kinds)
    renamed = {tag.partition(",")[0] for tag, model in MODELS.items() if key in model.renamed_keys}
    return "not " + ", ".join(f"`{kind}`" for kind in sorted(renamed)) if renamed else ""


def name_forms(section: Section, labels: Sequence[str]) -> str:
    """Which forms of the mapping have a key, blank for all of them."""
    names = [label for label, _ in section.alternatives]
    if len(labels) == len(names):
        return ""
    if "" in labels:
        return "not " + ", ".join(name for name in names if name)
    return "only " + ", ".join(labels)


def make_pages() -> dict[str, str]:
    """The text of each page by its path in ``docs``: the first one, and one for each section with what it holds."""
    page = Page()
    page.add("", (("", ""),), "")
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        # The pages are Markdown, and so are the descriptions.
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    heads: dict[str, list[Section]] = {FIRST: []}
    for section in page.list_sections():
        if section.title and "." not in section.title:
            heads[f"{OTHERS}/{make_anchor(section.title)}.md"] = []
        section.page = list(heads)[-1]
        heads[section.page].append(section)
    template, contents = environment.get_template(TEMPLATE), [first for first, *_ in list(heads.values())[1:]]
    texts = {
        path: template.render(page=page, sections=sections, contents=contents if path == FIRST else [], top=TOP)
        for path, sections in heads.items()
    }
    return {path: text if path == FIRST else _move(text) for path, text in texts.items()}


def _move(text: str) -> str:
    """The text of a page in the folder of the others: its links lead from there."""
    return text.replace(f"]({OTHERS}/", "](").replace(f"]({FIRST}", f"](../{FIRST}")


if __name__ == "__main__":
    for left in (FOLDER / OTHERS).glob("*.md"):
        left.unlink()
    for path, text in make_pages().items():
        (FOLDER / path).parent.mkdir(exist_ok=True)
        (FOLDER / path).write_text(text, "utf-8")
