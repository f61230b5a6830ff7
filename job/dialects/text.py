"""A lake.yaml's text: read with the line of every key, stages merged, duplicate keys refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from job.errors import SpecInvalidError

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """The file's content and, for messages, the line (from 1) on which each key's value begins."""

    name: str
    folder: Path
    data: Mapping[str, Any]
    lines: Mapping[Location, int]

    def where(self, location: Location) -> str:
        """``lake.yaml:12: tables.0.read`` for the nearest place of ``location`` that the file has."""
        place = location
        while place and place not in self.lines:
            place = place[:-1]
        line = self.lines.get(place)
        dotted = ".".join(str(step) for step in location)
        return f"{self.name}:{line}: {dotted}" if line else f"{self.name}: {dotted}".rstrip(": ")


def read(path: Path, *, stage: str | None = None) -> Document:
    """The file at ``path``, with the overrides of ``deployment.stages.{stage}`` merged over it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecInvalidError(f"{path} cannot be read ({error}).", remedy="Name a lake.yaml file.") from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SpecInvalidError(f"{path.name} is not YAML: {error}") from error
    if not isinstance(data, dict) or root is None:
        raise SpecInvalidError(f"{path.name} holds {type(data).__name__}, expected a mapping with the key 'pipeline'.")
    lines: dict[Location, int] = {}
    duplicates: list[str] = []
    _index(root, (), lines, duplicates)
    if duplicates:
        raise SpecInvalidError(f"{path.name} gives keys twice:", problems=duplicates)
    return Document(path.name, path.resolve().parent, _staged(data, stage, path.name), lines)


def _index(node: yaml.Node, location: Location, lines: dict[Location, int], duplicates: list[str]) -> None:
    lines[location] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            _index(item, (*location, number), lines, duplicates)
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            place = (*location, str(key.value))
            if key.value in seen:
                duplicates.append(f"line {key.start_mark.line + 1}: {'.'.join(map(str, place))} is given twice.")
            seen.add(key.value)
            _index(value, place, lines, duplicates)
            lines[place] = key.start_mark.line + 1


def _staged(data: dict[str, Any], stage: str | None, name: str) -> dict[str, Any]:
    if stage is None:
        return data
    deployment = data.get("deployment")
    stages = deployment.get("stages") if isinstance(deployment, dict) else None
    if not isinstance(stages, dict) or stage not in stages:
        known = ", ".join(sorted(map(str, stages))) if isinstance(stages, dict) and stages else "none"
        raise SpecInvalidError(f"{name} has no stage {stage!r}; deployment.stages has: {known}.")
    return merge(data, stages[stage] or {})


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid over ``base``: mappings key by key, everything else whole."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged
