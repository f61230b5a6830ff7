"""Describe what each party from outside has for its own, what it is refused, and the way out of that."""

from collections.abc import Iterator
from typing import Final

from infra.review.page import Cell, Code, Line, Section, Table
from infra.settings import Settings
from lakewriter.policy.parties import Reach, find_policy, find_reach
from lakewriter.policy.s3_statements import WITHHELD
from lakewriter.spec.trust import Party

_MOST: Final = 6
"""The most folders and tables of a cell; the policies below have all."""
_RESETS: Final = ("glue:DeleteTable", "glue:BatchDeleteTable", "glue:DeleteDatabase")
_LISTED: Final = "in its document, and not allowed"
_OWN_PLACE: Final = (
    "Another folder or table for the party's pipeline; to read the job's: access: read in an entry more."
)


def describe_parties(settings: Settings) -> Section:
    """Describe the contract of every party; without parties there is nothing to describe."""
    tables = tuple(
        Table(("What", "Where", "The way out"), tuple(_describe(settings, party)), name, (26, 40, 34))
        for name, party in settings.deployment.parties
        if party.access != "load"
    )
    text = (
        "Its own is all that a party reaches. What is refused to it fails with AccessDenied, whatever other policies "
        "allow."
        if tables
        else "No party has a contract."
    )
    return Section("What each party has for its own, and what it is refused", text, tables)


def _describe(settings: Settings, party: Party) -> Iterator[tuple[Cell, ...]]:
    spec, reach = settings.spec, find_reach(settings.spec, party)
    verb = "read" if party.access == "read" else "write"
    prefixes = [f"s3://{spec.access.bucket}/{start}*" for start in reach.starts]
    yield f"Its own, to {verb}", _shorten(prefixes), _say_contract(party)
    if reach.catalog:
        yield f"Its own in the catalog, to {verb}", _shorten(list(reach.catalog)), ""
    yield "Refused: the job's records, by listing too", Code("_lakewriter/*"), "None: they are the job's alone."
    if party.access == "write":
        yield from _describe_refusals(settings, party, reach)


def _say_contract(party: Party) -> str:
    if party.tables or party.paths:
        return ""
    return "Neither tables nor paths are given, so it shares the prefix: give either to narrow it."


def _describe_refusals(settings: Settings, party: Party, reach: Reach) -> Iterator[tuple[Cell, ...]]:
    spec, deployment = settings.spec, settings.deployment
    files = [f"s3://{spec.access.bucket}/{start}*" for start in reach.job_starts]
    yield "Refused: files among the job's own, which are only ever added to", _shorten(files), _OWN_PLACE
    if reach.job_catalog:
        yield "Refused: changes to the job's tables and databases", _shorten(list(reach.job_catalog)), _OWN_PLACE
    policy = find_policy(spec, party)
    if policy is None or deployment.vendor_verbatim:
        return
    listed = {action for statement in policy.s3 for action in statement.actions}
    for action, reason in WITHHELD.items():
        if action in listed:
            yield (
                (Code(action), _LISTED),
                f"Its own files: {reason}.",
                Code("vendor_verbatim: true"),
            )
    resets = any(action in _RESETS for statement in policy.glue for action in statement.actions)
    if resets and reach.catalog and not deployment.allow_reset:
        named: Cell = (*map(Code, _RESETS), _LISTED)
        yield named, "Its own tables and databases.", Code("allow_reset: true")


def _shorten(names: list[str]) -> Cell:
    more: list[Line] = [f"and {len(names) - _MOST} more"] if len(names) > _MOST else []
    return (*map(Code, names[:_MOST]), *more)
