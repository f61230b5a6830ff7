"""Sphinx's settings for the pages of this repository: the Markdown files as they are, those at its top included."""

import json
import shutil
from pathlib import Path
from string import Template
from typing import Any, Final

from sphinx.application import Sphinx

from lakewriter import __version__

project = "Lakewriter"
version = release = __version__
extensions = ["myst_parser"]
# Sphinx is started in the repository's root, so that links between the pages are those of the repository.
include_patterns = ["docs/*.md", "docs/*/*.md", "*.md"]
root_doc = "docs/index"
# Links to headings are checked: each down to the fourth level is a target.
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Lakewriter"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


def _copy_pictures(app: Sphinx, _error: Exception | None) -> None:
    """Pages name pictures in HTML, for light and dark, which Sphinx does not look into."""
    shutil.copytree(Path(app.srcdir) / "docs" / "pictures", Path(app.outdir) / "docs" / "pictures", dirs_exist_ok=True)


TEXTS: Final = "texts.js"
OFFLINE: Final = Template("""\
"use strict";
{
  // Sphinx's search asks the server for each page that it shows an excerpt of. Pages on a disk have none to ask.
  const texts = $texts;
  const ask = window.fetch;
  const folder = location.pathname.slice(0, location.pathname.lastIndexOf("/") + 1);
  window.fetch = (address, ...rest) => {
    const path = decodeURI(new URL(address, location.href).pathname).slice(folder.length);
    const text = location.protocol === "file:" ? texts[path.replace(/[.]html$$/, "")] : undefined;
    if (text === undefined) return ask(address, ...rest);
    const page = document.createElement("div");
    page.setAttribute("role", "main");
    page.textContent = text;
    return Promise.resolve(new Response(page.outerHTML));
  };
}
""")


def _add_texts(app: Sphinx, page: str, _template: str, _context: dict[str, Any], _doctree: object) -> None:
    if page == "search":
        app.add_js_file(TEXTS, priority=100)


def _write_texts(app: Sphinx, error: Exception | None) -> None:
    """The text of all pages, for the excerpts of a search without a server."""
    if error is None:
        texts = {name: app.env.get_doctree(name).astext() for name in sorted(app.env.found_docs)}
        written = OFFLINE.substitute(texts=json.dumps(texts).replace("</", "<\\/"))
        (Path(app.outdir) / "_static" / TEXTS).write_text(written, "utf-8")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", _add_texts)
    app.connect("build-finished", _copy_pictures)
    app.connect("build-finished", _write_texts)
