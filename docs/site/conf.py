"""Sphinx's settings for the pages of this repository: the Markdown files as they are, those at its top included."""

import shutil
from pathlib import Path

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


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("build-finished", _copy_pictures)
