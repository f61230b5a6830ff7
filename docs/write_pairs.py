"""Write the page of the settings of a table that do not go together, from the tables that the product refuses them by.

scripts/reference
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from lakewriter.dialects.registry import DIALECTS
from lakewriter.spec.pairs import CONTINUOUS, NEEDS, REFUSED, Refusal

FOLDER: Final = Path(__file__).parent
PAGE: Final = "settings-together.md"
_BEGINNING: Final = """\
# Settings that do not go together

A table has a mode, a way to read its source, and the keys of its entry in `tables`. All of them go together, except
those on this page: a file with such a pair is refused with `SPEC_INVALID` before anything is read. `check` and `plan`
report all pairs of a file at once. Where `contract`, `on_bad_row`, `expect` and `repeated: fail` can be kept depends on
their values, as their messages say. `…` in a message is the setting's own name.
"""


def make_page() -> str:
    """Return the text of the page."""
    return "\n".join((_BEGINNING, *_list_sections()))


def _list_sections() -> Iterator[str]:
    yield from _write("Needed beside", "needs", NEEDS)
    yield from _write("Refused beside", "not beside", REFUSED)
    for dialect in DIALECTS:
        for refusing in dialect.refuses:
            of = f"{', '.join(f'`{kind}`' for kind in dialect.types)}: {refusing.name}"
            yield from _write(of, "", {(setting, ""): refusal for setting, refusal in refusing.settings.items()})
    continuous = {(setting, ""): refusal for setting, refusal in CONTINUOUS.items()}
    yield from _write("`run --continuous`", "", continuous)


def _write(title: str, other: str, refused: Mapping[tuple[str, str], Refusal]) -> Iterator[str]:
    head = ["setting", other, "message", "what to do"] if other else ["setting", "message", "what to do"]
    yield from (f"## {title}", "", _write_row(head), _write_row(["---"] * len(head), ""))
    for pairs, says, remedy in _join_rows(refused):
        settings, besides = (
            ", ".join(f"`{name}`" for name in dict.fromkeys(names)) for names in zip(*pairs, strict=True)
        )
        yield _write_row([settings, *([besides] if other else []), says.format(table="The table"), remedy])
    yield ""


def _join_rows(refused: Mapping[tuple[str, str], Refusal]) -> Iterator[tuple[list[tuple[str, str]], str, str]]:
    """Yield one row for the pairs whose messages differ in one of the two names alone, with ``…`` in its place."""
    masked = {
        pair: [(pair[1 - side], *_mask(refusal, pair[side])) for side in (0, 1)] for pair, refusal in refused.items()
    }
    counts = Counter(key for keys in masked.values() for key in keys)
    rows: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for pair, keys in masked.items():
        rows.setdefault(max(keys, key=counts.__getitem__), []).append(pair)
    for (_, says, remedy), pairs in rows.items():
        alone = refused[pairs[0]]
        yield (pairs, says, remedy) if len(pairs) > 1 else (pairs, alone.says, alone.remedy)


def _mask(refusal: Refusal, name: str) -> tuple[str, str]:
    # "mode: refresh" is 'refresh' in its message.
    word = re.compile(rf"\b{re.escape(name.rpartition(' ')[2])}\b") if name else re.compile("(?!)")
    return word.sub("…", refusal.says), word.sub("…", refusal.remedy)


def _write_row(cells: list[str], space: str = " ") -> str:
    return "|" + "|".join(f"{space}{cell}{space}" for cell in cells) + "|"


if __name__ == "__main__":
    (FOLDER / PAGE).write_text(make_page(), "utf-8")
