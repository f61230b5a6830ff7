"""Texts of numbers for columns of every decimal type: of each length, with signs, exponents and zeros."""

import random
import re
from collections.abc import Iterator
from decimal import Context

DECIMALS = [(precision, scale) for precision in range(1, 39) for scale in range(precision + 1)]
LENGTHS = 80
_EXACT = Context(prec=400)
_OF_JSON = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def list_numbers(rng: random.Random, precision: int, scale: int, count: int) -> Iterator[str]:
    """Yield texts of numbers.

    One in three has each length from 0 to 80 before its point in turn, one behind it, and one about as many digits as
    the type; the other length is about the type's, so that many of them fit.
    """
    first = rng.randrange(LENGTHS + 1)
    for number in range(count):
        length = (first + number // 3) % (LENGTHS + 1)
        before, behind = (max(most - rng.choice([-1, 0, 0, 0, 1, 5]), 0) for most in (precision - scale, scale))
        if number % 3 < 2:
            before, behind = (length, behind) if number % 3 else (before, length)
        yield write_number(rng, before, behind)


def write_number(rng: random.Random, before: int, behind: int) -> str:
    """Return a number of so many digits before the point and behind it, which an exponent may move."""
    digits = rng.choice(["9" * (before + behind), "".join(rng.choices("0123456789", k=before + behind))])
    if rng.random() < 0.2:
        zeros = rng.randint(0, behind)
        digits = digits[: len(digits) - zeros] + "0" * zeros
    whole, fraction, exponent = digits[:before].lstrip("0") or "0", digits[before:], ""
    if rng.random() < 0.3:
        moved = rng.randint(-min(len(fraction), 9), min(len(whole), 9))
        both, point = whole + fraction, len(whole) - moved
        whole, fraction = both[:point].lstrip("0") or "0", both[point:]
        exponent = f"{rng.choice('eE')}{rng.choice(['', '+']) if moved >= 0 else ''}{moved}"
    elif rng.random() < 0.1:
        exponent = f"e{rng.randint(-90, 90)}"
    sign = rng.choice(["", "", "-"])
    return f"{sign}{whole}{'.' if fraction else ''}{fraction}{exponent}"


def write_text(rng: random.Random, number: str) -> str:
    """Return another spelling that texts of numbers may have."""
    sign, digits = ("-", number[1:]) if number.startswith("-") else (rng.choice(["", "+"]), number)
    return f"{sign}{'0' * rng.randint(0, 3)}{digits}"


def fits(text: str, precision: int, scale: int) -> bool:
    """Whether a decimal type has the number, by Python's decimals."""
    scaled = _EXACT.scaleb(_EXACT.create_decimal(text), scale)
    return scaled == _EXACT.to_integral_value(scaled) and _EXACT.abs(scaled) < 10**precision


def is_plain(text: str, precision: int, scale: int) -> bool:
    """Whether the digits of a text are those of the type, without an exponent and without zeros around them."""
    whole, _, fraction = text.lstrip("+-").partition(".")
    return "e" not in text.lower() and len(whole) <= max(precision - scale, 1) and len(fraction) <= scale


def is_of_json(text: str) -> bool:
    """Whether JSON's grammar has the number."""
    return _OF_JSON.fullmatch(text) is not None
