"""Random small CSV files, read by Python's ``csv`` as well: every difference has its reason."""

import csv
import io
import os
import random

from lakewriter.source.files.csv_rows import BEHIND_QUOTE, LINE_END, OPEN_QUOTE
from tests.source.files.reading import Outcome, read_csv
from tests.support.sample import fifth_of

FILES = int(os.environ.get("LAKEWRITER_CSV_FILES", fifth_of(1500)))
ALPHABETS = (
    ["a", "1", '"', ",", "\n", '"",', '","', '"\n'],
    ["é", '"', ",", "\r\n", '""', " ", '"a,b"', '"a\r\nb"'],
    ["x", ",", "\n", '"y"', '""', "\\", "\t", ";"],
    ["a", ",", "\r", "\n", '"b\rc"'],
)


def read_by_python(text: str) -> list[list[str]] | None:
    """The rows that are not blank; None where Python refuses the file."""
    try:
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return None


def explain(text: str, ours: Outcome) -> str | None:
    """Why Python gives other rows; None where it has to give the same."""
    reasons = {reason for _, reason, _ in ours.bad}
    if LINE_END in reasons:
        return "Python ends a row at any CR and any LF"
    if reasons & {OPEN_QUOTE, BEHIND_QUOTE}:
        return "Python refuses the whole file"
    return None


def test_rows_are_those_of_pythons_reader():
    chance = random.Random(4180)
    for _ in range(FILES):
        text = "".join(chance.choices(chance.choice(ALPHABETS), k=chance.randint(1, 40)))
        ours = read_csv(text.encode())
        theirs = read_by_python(text)
        if explain(text, ours) is not None:
            assert theirs is None or LINE_END in {reason for _, reason, _ in ours.bad}, text
            continue
        if not ours.names:
            # The first row itself is bad, and says how many fields the others have.
            continue
        assert theirs is not None, text
        count = len(ours.names)
        # Python has no field for a blank line, where ours is a row of one column; a quoted empty text is one to both.
        good = [[value or "" for value in row] for row in ours.good if row != (None,)]
        assert good == [row for row in theirs if len(row) == count], text
        # In wider files lines of blanks are no rows to us, and one field to Python; so is a quoted empty text.
        bad = [row for _, reason, row in ours.bad if not (reason.startswith("it has 1 ") and not row.strip(' \t"'))]
        assert len(bad) == sum(
            len(row) != count and (len(row) > 1 or bool("".join(row).strip(' \t"'))) for row in theirs
        )
