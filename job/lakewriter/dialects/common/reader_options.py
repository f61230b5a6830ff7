"""Find options that Spark's readers do not know: Spark ignores one that is misspelt, and reads something else."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from lakewriter.spec.source_formats import FORMATS, OF_EVERY_FILE, find_format

# What is no option of Spark's goes to the database's driver as a property of the connection. These are every driver's;
# MySQL has the numbered ones. https://spark.apache.org/docs/4.1.1/sql-data-sources-jdbc.html
_OF_DRIVERS: Final = frozenset({"user", "password", "password1", "password2", "password3"})
_JDBC: Final = "jdbc"
_KAFKA: Final = "kafka"
_OF_OTHERS: Final = {_JDBC: _OF_DRIVERS, _KAFKA: frozenset[str]()}
"""What formats other than files take beside their own options."""
_ALIKE: Final = 0.6
"""A word that is at least so similar to an option is taken for a misspelt one."""
_ALIKE_IN_JDBC: Final = 0.85
"""More, since what is no option of Spark's may be a property of the driver."""


def list_known_options(form: str) -> frozenset[str] | None:
    """Return the options of a format, None for one that is not Spark's own."""
    kind = find_format(form)
    if kind.options is None:
        return None
    return kind.options | _OF_OTHERS.get(kind.name, OF_EVERY_FILE)


def find_unknown_option(form: str, options: Iterable[str]) -> str | None:
    """Describe the first option that the format's reader does not know; None if it knows all.

    A name with a dot is a setting of Hadoop's, which Spark hands on.
    """
    valid = list_known_options(form)
    if valid is None:
        return None
    names = {name.lower(): name for name in valid}
    of_spark = names.keys() - _OF_DRIVERS
    least = _ALIKE_IN_JDBC if form.lower() == _JDBC else _ALIKE
    for option in options:
        if option.lower() in names or "." in option:
            continue
        nearest = difflib.get_close_matches(option.lower(), sorted(of_spark), 1, least)
        if nearest:
            return f"{option!r} is no option of {form}; did you mean {names[nearest[0]]!r}?"
        # A property of a database's driver may have any name.
        if form.lower() != _JDBC:
            return f"{option!r} is no option of {form}{_list_formats(option)}; leave it out."
    return None


def _list_formats(option: str) -> str:
    formats = [
        form.name for form in FORMATS.values() if option.lower() in {name.lower() for name in form.options or ()}
    ]
    return f"; it is one of {' and '.join(formats)}" if formats else ""


def note_unknown_options(form: str, options: Mapping[str, Any]) -> str | None:
    """Return a note on options that are handed on unseen; None where there are none."""
    valid = list_known_options(form)
    names = {name.lower() for name in valid or ()}
    # Those are properties of Kafka's consumer, which Spark hands to it.
    handed_on = ("kafka.",) if form.lower() == _KAFKA else ()
    unseen = ", ".join(
        repr(option) for option in options if option.lower() not in names and not option.lower().startswith(handed_on)
    )
    if not unseen:
        return None
    if form.lower() == _JDBC:
        return f"{unseen}: not known to Spark, handed to the database's driver as properties of the connection."
    reader = "Hadoop" if valid is not None else f"the reader of {form}"
    return f"{unseen}: not known here, handed to {reader} as given."
