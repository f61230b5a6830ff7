"""Complete a stage and a table in a shell, from the file that the command line names already."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click


def complete_stage(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the file's stages."""
    return _filter(_list_stages(_find_lake(ctx)), incomplete)


def complete_table(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the ids of the file's tables."""
    return _filter(_list_tables(_find_lake(ctx), ctx.params.get("stage")), incomplete)


def _find_lake(ctx: click.Context) -> Any:
    """Return the file; click leaves the arguments where they are when the last option has no value yet."""
    return ctx.params.get("lake") or next(iter(ctx.args), None)


def _list_stages(lake: Any) -> Iterable[str]:
    from lakewriter.dialects.common.yaml_text import list_stages

    try:
        return list_stages(Path(lake))
    except Exception:  # noqa: BLE001 - a file that cannot be read has nothing to offer, and nobody to report to
        return ()


def _list_tables(lake: Any, stage: str | None) -> Iterable[str]:
    from lakewriter.dialects.lake_yaml import load_spec

    try:
        return [table.id for table in load_spec(Path(lake), stage=stage).tables]
    except Exception:  # noqa: BLE001 - likewise
        return ()


def _filter(names: Iterable[str], beginning: str) -> list[str]:
    return sorted(name for name in names if name.startswith(beginning))
