"""Define the rules for a source that changes, and for rows that cannot be loaded as they are."""

from typing import Final, Literal

from lakewriter.spec.model import Model

SHARE: Final = 0.001
"""The share of bad rows that a load accepts if the file gives none."""


class Contract(Model):
    """The rules for columns that a table does not have, and for types that grow.

    ``evolve`` takes them, ``freeze`` fails the load, ``discard`` leaves the columns out.
    """

    columns: Literal["evolve", "freeze", "discard"] = "evolve"
    types: Literal["evolve", "freeze"] = "evolve"


class BadRows(Model):
    """The rule for a row that cannot be loaded; at most the share ``at_most`` of all rows may be in quarantine."""

    action: Literal["fail", "quarantine"] = "fail"
    at_most: float = SHARE
