"""A rule of the product that is taken out, as a change of its text."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """``edits`` are by module, under ``lakewriter.``, pairs of what is there and what is put in its place.

    ``kinds`` are the tables in whose histories it can show.
    """

    rule: str
    edits: Mapping[str, tuple[tuple[str, str], ...]]
    kinds: str = "files,glue,iceberg,airbyte,messages,estuary,batches"


def leave_out(rule: str, module: str, old: str, new: str, kinds: str = "") -> Mutation:
    edits = {module: ((old, new),)}
    return Mutation(rule, edits, kinds) if kinds else Mutation(rule, edits)
