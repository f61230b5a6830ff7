"""Draw ``flow``, what there is around a load, and ``load``, its way through the folders: light and dark.

.venv/bin/python docs/pictures/draw.py
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
WIDTH: Final = 960
BOX: Final = (156, 62)
"""Width and height of a box."""


@dataclass(frozen=True)
class Theme:
    """Colours of one of the two pictures; the band behind the tasks is lighter than the boxes on it."""

    paper: str
    ink: str
    faint: str
    box: str
    band: str
    store: str


THEMES: Final = {
    "light": Theme("#ffffff", "#1f2328", "#59636e", "#f6f8fa", "#eaf2fd", "#fdf3e3"),
    "dark": Theme("#0d1117", "#e6edf3", "#9198a1", "#212830", "#13233a", "#33260d"),
}


@dataclass(frozen=True)
class Box:
    """A step: its folder or file, and what it does, in at most two lines."""

    x: int
    y: int
    name: str
    does: tuple[str, ...]
    is_store: bool = False


@dataclass(frozen=True)
class Line:
    """A bent line with an arrow, and the words at ``at``."""

    path: str
    text: str
    at: tuple[int, int]


@dataclass(frozen=True)
class Picture:
    """Boxes by name, arrows between them, and words at places; ``band`` is the top of the band, if there is one."""

    title: str
    height: int
    boxes: Mapping[str, Box]
    arrows: tuple[tuple[str, str], ...]
    words: tuple[tuple[str, int, int], ...] = ()
    lines: tuple[Line, ...] = ()
    band: int | None = None


LOAD: Final = Picture(
    "The way of a load through the folders of the package",
    490,
    {
        "file": Box(30, 50, "lake.yaml", ("the pipeline,", "in a vendor's words")),
        "dialects": Box(216, 50, "dialects/", ("reads it, says what is", "wrong, translates it")),
        "spec": Box(402, 50, "spec/", ("the same in neutral", "words")),
        "run": Box(588, 50, "run/load.py", ("the nine steps", "of each table")),
        "source": Box(30, 206, "source/", ("opens a feed: rows of", "Spark, or pieces of files")),
        "shape": Box(216, 206, "shape/", ("columns, types, names,", "tracking, flattening")),
        "encode": Box(402, 206, "encode/", ("Parquet, Avro, CSV,", "JSON Lines")),
        "staging": Box(588, 206, "staging/", ("rolls files, uploads", "parts, writes receipts")),
        "uploads": Box(774, 206, "S3 uploads", ("incomplete: nobody", "sees them"), is_store=True),
        "attempt": Box(216, 362, "commit/attempt.py", ("binds the intent: the", "point of no return")),
        "recover": Box(402, 362, "commit/recover.py", ("completes, publishes,", "retires, reads back")),
        "catalog": Box(588, 362, "Glue or Iceberg", ("tables, partitions,", "snapshots"), is_store=True),
        "objects": Box(774, 362, "S3 objects", ("created once,", "never replaced"), is_store=True),
        "state": Box(30, 362, "_lakewriter/", ("state, intents,", "reports"), is_store=True),
    },
    (
        ("file", "dialects"), ("dialects", "spec"), ("spec", "run"), ("source", "shape"), ("shape", "encode"),
        ("encode", "staging"), ("staging", "uploads"), ("attempt", "recover"), ("recover", "catalog"),
        ("attempt", "state"), ("uploads", "objects"),
    ),
    (
        ("on the driver", 30, 34),
        ("in the tasks of Spark", 216, 190),
        ("on the driver, from the intent alone; any process can go on with it", 312, 346),
    ),
    (
        # A load hands a plan down to its tasks, and gets receipts back from them.
        Line("M666 112 V134 H108 V206", "a task plan", (330, 128)),
        Line("M666 268 V314 H294 V362", "receipts: key, upload, parts, rows", (330, 308)),
        Line("M480 424 V458 H852 V424", "completes each upload with If-None-Match", (560, 474)),
    ),
    band=170,
)  # fmt: skip
FLOW: Final = Picture(
    "Sources go through a Spark job to staged uploads, the intent and visible files; lake.yaml makes job and stacks",
    300,
    {
        "files": Box(30, 44, "Files, databases", ("CSV, JSON, Parquet,", "ORC, JDBC, Kafka")),
        "vendors": Box(30, 126, "Airbyte, Estuary", ("messages, documents,", "at once or always")),
        "frames": Box(30, 208, "Your DataFrame", ("from a notebook", "or a Spark job")),
        "job": Box(216, 126, "Spark job", ("on EMR Serverless, or", "wherever Spark runs")),
        "file": Box(216, 208, "lake.yaml", ("one file describes", "the pipeline")),
        "uploads": Box(402, 126, "Staged uploads", ("incomplete: nobody", "sees them"), is_store=True),
        "stacks": Box(402, 208, "CDK stacks", ("bucket, roles, policies,", "schedule, alarms")),
        "intent": Box(588, 126, "The intent", ("one conditional write:", "all of it, or nothing"), is_store=True),
        "catalog": Box(774, 44, "Glue, Iceberg", ("tables, partitions,", "snapshots"), is_store=True),
        "objects": Box(774, 126, "Files in S3", ("created once,", "never replaced"), is_store=True),
        "readers": Box(774, 208, "Readers", ("Athena, Snowflake,", "Spark, DuckDB, Trino")),
    },
    (
        ("vendors", "job"), ("job", "uploads"), ("uploads", "intent"), ("intent", "objects"), ("file", "stacks"),
        ("objects", "readers"), ("file", "job"), ("objects", "catalog"),
    ),
    (("where rows come from", 30, 28), ("exactly once per job id", 402, 112), ("your lake", 774, 28)),
    (
        Line("M186 75 H200 V145 H216", "", (0, 0)),
        Line("M186 239 H200 V169 H216", "", (0, 0)),
    ),
)  # fmt: skip


def draw(picture: Picture, theme: Theme) -> str:
    """The picture as SVG text."""
    boxes = picture.boxes
    band = f'<rect x="16" y="{picture.band}" width="{WIDTH - 32}" height="116" rx="8" fill="{theme.band}"/>'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {picture.height}" role="img" '
        f'font-family="ui-sans-serif, system-ui, sans-serif" font-size="12" fill="{theme.ink}">',
        f"<title>{escape(picture.title)}</title>",
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="{theme.faint}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{picture.height}" fill="{theme.paper}"/>',
        *([band] if picture.band is not None else []),
        *(f'<text x="{x}" y="{y}" fill="{theme.faint}">{escape(text)}</text>' for text, x, y in picture.words),
        *(_draw_arrow(boxes[start], boxes[end], theme) for start, end in picture.arrows),
        *(_draw_line(line.path, theme, line.text, line.at) for line in picture.lines),
        *(_draw_box(box, theme) for box in boxes.values()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _draw_box(box: Box, theme: Theme) -> str:
    width, height = BOX
    fill = theme.store if box.is_store else theme.box
    lines = "".join(
        f'<text x="{box.x + 10}" y="{y}" fill="{theme.faint}" font-size="11">{escape(line)}</text>'
        for y, line in zip((box.y + 38, box.y + 53), box.does, strict=False)
    )
    return (
        f'<rect x="{box.x}" y="{box.y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{theme.faint}"/>'
        f'<text x="{box.x + 10}" y="{box.y + 20}" font-weight="600">{escape(box.name)}</text>{lines}'
    )


def _draw_arrow(start: Box, end: Box, theme: Theme) -> str:
    width, height = BOX
    if start.x == end.x:
        x = start.x + width // 2
        first, last = (start.y + height, end.y) if start.y < end.y else (start.y, end.y + height)
        return _draw_line(f"M{x} {first} V{last}", theme)
    y = start.y + height // 2
    first, last = (start.x + width, end.x) if start.x < end.x else (start.x, end.x + width)
    return _draw_line(f"M{first} {y} H{last}", theme)


def _draw_line(path: str, theme: Theme, text: str = "", at: tuple[int, int] = (0, 0)) -> str:
    line = f'<path d="{path}" fill="none" stroke="{theme.faint}" marker-end="url(#tip)"/>'
    label = f'<text x="{at[0]}" y="{at[1]}" fill="{theme.faint}" font-size="11">{escape(text)}</text>' if text else ""
    return line + label


if __name__ == "__main__":
    for name, colours in THEMES.items():
        for picture, kind in ((FLOW, "flow"), (LOAD, "load")):
            (FOLDER / f"{kind}-{name}.svg").write_text(draw(picture, colours), "utf-8")
