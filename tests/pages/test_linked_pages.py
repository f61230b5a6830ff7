"""Pages in a folder: every link leads somewhere, and every page can be reached from the first one."""

from html.parser import HTMLParser
from pathlib import PurePosixPath
from urllib.parse import unquote, urldefrag

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from tests.load.refreshed import Refreshed
from tests.pages.parsed_page import Page, require_self_contained


class Links(HTMLParser):
    """The links of a page, and the names that links can lead to."""

    def __init__(self, html):
        super().__init__()
        self.targets, self.names = [], set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.targets += [values["href"]] if "href" in values else []
        self.names |= {values["id"]} if "id" in values else set()


def resolve(folder, name, target):
    """The page that a link on another leads to, and the name on it."""
    address, fragment = urldefrag(target)
    path = folder / PurePosixPath(name).parent / unquote(address) if address else folder / name
    return path.resolve().relative_to(folder.resolve()).as_posix(), fragment


def crawl(folder):
    """The pages that can be reached from the first one; a link that leads nowhere is an error."""
    waiting, seen = ["index.html"], {}
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen[name] = Links((folder / name).read_text("utf-8"))
            waiting += [resolve(folder, name, target)[0] for target in seen[name].targets]
    for name, links in seen.items():
        for target in links.targets:
            page, fragment = resolve(folder, name, target)
            assert not fragment or fragment in seen[page].names, (name, target)
    return seen


@pytest.fixture
def users(tmp_path, aws, bucket):
    lake = Refreshed(tmp_path, aws, "none", primary_key=["id"])
    for job, ids in (("a", [1, 2]), ("b.2", [3, 3, 4]), ("c", [5])):
        lake.load(job, id=ids, Name=["x"] * len(ids))
    return lake


def write(lake, output):
    return CliRunner().invoke(main, ["catalogue", str(lake.folder / "lake.yaml"), "-o", str(output)])


def test_pages_in_a_folder_link_to_each_other(users, tmp_path):
    folder = tmp_path / "pages"
    result = write(users, folder)
    assert result.output.replace("\n", "") == f"wrote 4 pages, the first is {folder}/index.html"
    seen = crawl(folder)
    assert {file.relative_to(folder).as_posix() for file in folder.rglob("*.html")} == set(seen)
    assert set(seen) == {"index.html", "loads/a.html", "loads/b.2.html", "loads/c.html"}
    # From a load to its table and to the other loads, and back.
    assert seen["loads/b.2.html"].targets == [
        "../index.html", "../index.html#history", "a.html", "c.html", "../index.html#table-1",
    ]  # fmt: skip
    for name in seen:
        require_self_contained((folder / name).read_text("utf-8"))


def test_catalogue_says_what_the_table_has(users, tmp_path):
    assert write(users, tmp_path / "lake.html").exit_code == 0
    html = (tmp_path / "lake.html").read_text("utf-8")
    text = " ".join(" ".join(Page(html).text).split())
    assert "loads 3, the last c at" in text
    assert "rows 1 " in text
    assert "Name string Name of crm.users" in text, text
    assert 'CREATE OR REPLACE TEMPORARY VIEW "crm_users"' in text
    # Variables are set by what stands before them, there are no placeholders, and no vendor has a word.
    assert text.index("SET VARIABLE") < text.index("getvariable(")
    for word in ("latest-job-id", "${", "supa", "airbyte", "sync"):
        assert word not in text.lower()
    assert not [target for target in Links(html).targets if not target.startswith("#")]


def test_folder_that_cannot_be_written(users, tmp_path):
    (tmp_path / "taken").write_text("", "utf-8")
    result = write(users, tmp_path / "taken" / "x")
    assert result.exit_code != 0
    assert "Give another folder: -o FOLDER." in result.output.replace("\n", " ")
