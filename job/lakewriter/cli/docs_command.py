"""``lakewriter docs``: the documentation, without a browser or a network."""

import click

from lakewriter.cli.shared import JSON, report_errors


@click.command()
@click.argument("words", nargs=-1)
@JSON
@report_errors
def docs(words: tuple[str, ...], *, as_json: bool) -> int:
    """Print a page of the documentation, or find one.

    WORDS are a page's name, such as refresh; an error's code, such as NAME_COLLISION; or words to look for, such as
    replace table every load. Without any, the pages are listed.
    """
    from lakewriter.cli.docs_view import run_docs

    return run_docs(words, as_json=as_json)
