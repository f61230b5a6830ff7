"""A rule of the product that is taken out, as a change of its text."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """``edits`` are by module, under ``lakewriter.``, pairs of what is there and what is put in its place.

    ``kinds`` are the tables in whose histories it can show; ``held_by`` are the arguments of pytest for the tests that
    fail without the rule, where it shows in too few histories.
    """

    rule: str
    edits: Mapping[str, tuple[tuple[str, str], ...]]
    kinds: str = "files,glue,iceberg,airbyte,messages,estuary,batches"
    held_by: str = ""


def leave_out(rule: str, module: str, old: str, new: str, kinds: str = "", *, held_by: str = "") -> Mutation:
    return Mutation(rule, {module: ((old, new),)}, kinds or Mutation.kinds, held_by)
