"""The site of all pages: each link and anchor leads somewhere, and a page loads nothing from elsewhere."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sphinx.search.en import SearchEnglish

from tests.docs.fences import PAGES, ROOT

CONF = ROOT / "docs" / "site"
LOADED = re.compile(
    r"""<(?:link|script|img|iframe|source|video)\b[^>]*\b(?:src|href|srcset)=["']?(?:https?:)?//[^"'> ]*"""
)
"""What a browser would fetch by itself from another host."""


def build(source: Path, out: Path) -> str:
    """Sphinx's warnings, which end ``scripts/site``."""
    command = [sys.executable, "-m", "sphinx", "--quiet", "--builder", "html", "--conf-dir", str(CONF)]
    done = subprocess.run([*command, str(source), str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    assert build(ROOT, out) == ""
    return out


@pytest.mark.exhaustive
def test_every_page_is_there(site):
    for page in PAGES:
        assert (site / page.relative_to(ROOT)).with_suffix(".html").is_file()
    assert (site / "docs" / "pictures" / "flow-dark.svg").is_file()


@pytest.mark.exhaustive
def test_a_page_loads_nothing_from_elsewhere(site):
    pages = [*site.rglob("*.html")]
    assert [(page.name, found) for page in pages for found in LOADED.findall(page.read_text("utf-8"))] == []
    styles = [*site.rglob("*.css")]
    assert [style.name for style in styles if re.search(r"url\([\"']?https?:", style.read_text("utf-8"))] == []


@pytest.mark.exhaustive
def test_search_has_an_index_that_needs_no_server(site):
    # A browser refuses to fetch files beside a page that it has opened from a disk; a script it takes.
    assert (site / "searchindex.js").read_text("utf-8").startswith("Search.setIndex(")


SEARCHED = [
    # words, a page that is among those that have them all
    ("replace table every load", "docs/refresh"),
    ("undo load", "docs/undo"),
    ("upgrade release", "docs/upgrading"),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("words", "page"), SEARCHED)
def test_search_has_the_page(site, words, page):
    """As the search of the site does it: by the stems of the words, all of which a page has."""
    index = json.loads((site / "searchindex.js").read_text("utf-8").removeprefix("Search.setIndex(").removesuffix(")"))
    stem = SearchEnglish({}).stem

    def find(word):
        found = [index[kind].get(stem(word), []) for kind in ("terms", "titleterms")]
        return {number for each in found for number in (each if isinstance(each, list) else [each])}

    pages = set.intersection(*map(find, words.split()))
    assert page in {index["docnames"][number] for number in pages}


@pytest.mark.exhaustive
def test_search_shows_where_the_words_stand(site):
    """A browser that reads the pages from a disk cannot ask for their texts: the page of the search brings them."""
    assert "SHOW_SEARCH_SUMMARY: true" in (site / "_static" / "documentation_options.js").read_text("utf-8")
    page, script = (site / "search.html").read_text("utf-8"), (site / "_static" / "texts.js").read_text("utf-8")
    assert "_static/texts.js" in page
    assert "_static/texts.js" not in (site / "docs" / "index.html").read_text("utf-8")
    texts = json.loads(script.partition("const texts = ")[2].partition(";\n")[0])
    assert "every load replaces the table" in " ".join(texts["docs/refresh"].split())


BROKEN = [
    ("[a page](nowhere.md)", "'myst' cross-reference target not found: 'nowhere.md'"),
    ("[a heading](index.md#nowhere)", "local id not found in doc 'docs/index': 'nowhere'"),
    ("[a heading here](#nowhere)", "'myst' cross-reference target not found: 'nowhere'"),
]


@pytest.mark.parametrize(("link", "warning"), BROKEN)
def test_a_broken_link_is_told(tmp_path, link, warning):
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    (tmp_path / "docs" / "index.md").write_text(f"# Pages\n\n{link}\n", "utf-8")
    assert warning in build(tmp_path, tmp_path / "out")
