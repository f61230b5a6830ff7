"""A lake.yaml's text: read with the line of every key, stages merged, duplicate keys refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lakewriter.errors import SpecInvalidError

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """The file's content and, for messages, the line (from 1) on which each key's value begins.

    ``origins`` has, for places that came from another file, its name and the place in it.
    """

    name: str
    folder: Path
    data: Mapping[str, Any]
    lines: Mapping[Location, int]
    origins: Mapping[Location, tuple[str, Location]] = field(default_factory=dict)

    def where(self, location: Location) -> str:
        """``lake.yaml:12: tables.0.read`` for the nearest place of ``location`` that the file has, or
        ``flow.yaml: endpoint.connector.config.bucket`` for what came from there."""
        for end in range(len(location), 0, -1):
            if location[:end] in self.origins:
                name, above = self.origins[location[:end]]
                return f"{name}: {'.'.join(map(str, (*above, *location[end:])))}".rstrip(": ")
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
    lines: dict[Location, int] = {}
    duplicates: list[str] = []
    try:
        data = yaml.safe_load(text)
        _index(yaml.compose(text, Loader=yaml.SafeLoader), (), lines, duplicates)
    except (yaml.YAMLError, ValueError) as error:
        raise SpecInvalidError(f"{path.name} is not YAML: {_reason(error)}.") from error
    except RecursionError as error:
        raise SpecInvalidError(f"{path.name} nests too deep, or an alias in it holds itself.") from error
    if not isinstance(data, dict):
        raise SpecInvalidError(f"{path.name} holds {type(data).__name__}, expected a mapping with the key 'pipeline'.")
    if duplicates:
        raise SpecInvalidError(f"{path.name} gives keys twice:", problems=duplicates)
    staged = _staged(data, stage, path.name)
    return Document(path.name, path.resolve().parent, staged, _staged_lines(lines, stage))


def _reason(error: Exception) -> str:
    """The parser's finding and its line, without the text around it, which may hold a secret."""
    mark = getattr(error, "problem_mark", None)
    parts = [part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part]
    said = ", ".join(parts) or str(error).splitlines()[0]
    return f"line {mark.line + 1}: {said}" if mark else said


def _index(node: yaml.Node | None, location: Location, lines: dict[Location, int], duplicates: list[str]) -> None:
    if node is not None:
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
    over = stages[stage] or {}
    if not isinstance(over, dict):
        raise SpecInvalidError(f"{name}: deployment.stages.{stage} holds {type(over).__name__}, expected a mapping.")
    return merge(data, over)


def _staged_lines(lines: Mapping[Location, int], stage: str | None) -> dict[Location, int]:
    """``lines``, with what a stage lays over the file at the stage's own lines."""
    above = ("deployment", "stages", stage)
    return {**lines, **{place[3:]: line for place, line in lines.items() if place[:3] == above and len(place) > 3}}


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid over ``base``: mappings key by key, everything else whole."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged
