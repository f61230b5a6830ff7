"""A lake.yaml: read with the place of every key, stages merged over it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lakewriter.dialects.common.source_files import (
    Location,
    Position,
    SpecFile,
    describe_kind,
    read_yaml,
    require_mapping,
)
from lakewriter.errors import SpecInvalidError


@dataclass(frozen=True)
class Document:
    """The file's content. ``origins`` has the file and the place of values that come from another file."""

    file: SpecFile
    folder: Path
    data: Mapping[str, Any]
    origins: Mapping[Location, Position] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file's."""
        return self.file.name

    def find_position(self, location: Location) -> Position:
        """Return the place at which the value at ``location`` really is."""
        for end in range(len(location), 0, -1):
            if location[:end] in self.origins:
                return self.origins[location[:end]].get_child(*location[end:])
        return Position(self.file, location)

    def describe_position(self, location: Location) -> str:
        """Return ``lake.yaml:12: tables.0.read``, or ``flow.yaml:7: materializations.m.bindings.0`` for a value from
        there."""
        return str(self.find_position(location))


def read(path: Path, *, stage: str | None = None) -> Document:
    """Return the file at ``path``, with the overrides of ``deployment.stages.{stage}`` merged over it."""
    file = read_yaml(path)
    data = require_mapping(file, "a mapping with the keys 'pipeline', 'destination' and 'tables'")
    over = _read_overrides(data, stage, file) if stage is not None else {}
    above = Position(file, ("deployment", "stages", str(stage)))
    origins = {location: above.get_child(*location) for location in _list_places(over, ())}
    return Document(file, path.resolve().parent, merge(data, over), origins)


def list_stages(path: Path) -> tuple[str, ...]:
    """Return the stages of the file at ``path``; none where it has no mapping of them."""
    deployment = read(path).data.get("deployment")
    stages = deployment.get("stages") if isinstance(deployment, dict) else None
    return tuple(map(str, stages)) if isinstance(stages, dict) else ()


def _read_overrides(data: Mapping[str, Any], stage: str, file: SpecFile) -> Mapping[str, Any]:
    deployment = data.get("deployment")
    stages = deployment.get("stages") if isinstance(deployment, dict) else None
    if not isinstance(stages, dict) or stage not in stages:
        names = ", ".join(sorted(map(str, stages))) if isinstance(stages, dict) and stages else "none"
        where = file.describe_position(("deployment", "stages"))
        raise SpecInvalidError(f"{where}: there is no stage {stage!r}; known stages: {names}.")
    over = stages[stage] or {}
    if not isinstance(over, dict):
        where = file.describe_position(("deployment", "stages", stage))
        raise SpecInvalidError(
            f"{where}: {describe_kind(over)}, expected a mapping of what the stage lays over the file."
        )
    return over


def _list_places(over: Any, above: Location) -> Iterator[Location]:
    """Yield the places of a stage's values: mappings are merged key by key, everything else as a whole."""
    for key, value in over.items():
        location = (*above, str(key))
        if isinstance(value, dict) and value:
            yield from _list_places(value, location)
        else:
            yield location


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``over`` laid over ``base``: mappings key by key, everything else whole."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged


def require_file_name(document: Document, location: Location) -> str:
    """Return the name of a file that is at ``location``."""
    value: Any = document.data
    for step in location:
        value = value[step]
    if not isinstance(value, str) or not value:
        raise SpecInvalidError(
            f"{document.describe_position(location)}: {describe_kind(value)}, expected the name of a file."
        )
    return value


def write_flow(value: Any) -> str:
    """Return ``value`` as YAML in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
