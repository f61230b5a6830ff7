"""One page, as HTML and as Markdown."""

import re

import pytest

from infra.review import html, markdown
from infra.review.page import Code, Page, Section, Strong, Table, make_codes

PAGE = Page(
    title="Pipeline a_b",
    summary=(("Destination", "s3://lake/data"),),
    notes=("Take <care> of *it*.",),
    sections=(
        Section(
            "Rights",
            "All of them.",
            (Table(("", "On"), ((Strong("Deny"), make_codes("a/*.b", "b|c")), ("Allow", "")), "Role_1", (20, 80)),),
        ),
        Section("Facts", "", (Table((), (("Most", Code("4")),)),)),
    ),
)

HTML = """\
<h1>Pipeline a_b</h1>
<dl class="summary">
<div><dt>Destination</dt><dd>s3://lake/data</dd></div>
</dl>
<p class="note">Take &lt;care&gt; of *it*.</p>
<section>
<h2>Rights</h2>
<p>All of them.</p>
<table class="fixed">
<caption>Role_1</caption>
<colgroup><col style="width: 20%"><col style="width: 80%"></colgroup>
<thead><tr><th></th><th>On</th></tr></thead>
<tbody>
<tr><td><strong>Deny</strong></td><td data-column="On"><code>a/<wbr>*.<wbr>b</code><br><code>b|c</code></td></tr>
<tr><td>Allow</td><td data-column="On"></td></tr>
</tbody>
</table>
</section>
<section>
<h2>Facts</h2>
<table class="facts">
<tbody>
<tr><th scope="row">Most</th><td><code>4</code></td></tr>
</tbody>
</table>
</section>
"""

# https://github.github.com/gfm/#tables-extension-: a bar ends a cell unless it is escaped, inside of code too.
MARKDOWN = """\
# Pipeline a\\_b

|  |  |
| --- | --- |
| Destination | s3://lake/data |

> **Note:** Take \\<care\\> of \\*it\\*.

## Rights

All of them.

**Role\\_1**

|  | On |
| --- | --- |
| **Deny** | `a/*.b`<br>`b\\|c` |
| Allow |  |

## Facts

|  |  |
| --- | --- |
| Most | `4` |
"""


def test_html() -> None:
    body = html.render(PAGE).partition("<body>\n")[2]
    assert body == HTML + "</body>\n</html>\n"


def test_html_needs_nothing_beside_it() -> None:
    document = html.render(PAGE)
    assert "<style>" in document
    assert [word for word in ("http:", "https:", "src=", "@import", "<link", "<script") if word in document] == []


def test_narrow_and_dark_screens() -> None:
    """On a phone rows are blocks under their columns' names; every colour outside of the two schemes is a variable."""
    style = html.render(PAGE).partition("<style>")[2].partition("</style>")[0]
    schemes, _, rest = style.partition("html {")
    assert "prefers-color-scheme: dark" in schemes
    assert re.findall(r"#[0-9a-f]{3,6}\b", rest) == []
    used, named = set(re.findall(r"var\((--\w+)\)", rest)), re.findall(r"(--\w+):", schemes)
    assert {name: named.count(name) for name in used} == dict.fromkeys(used, 2)
    assert "@media screen and (max-width: 44rem)" in rest
    assert "content: attr(data-column)" in rest


def test_markdown() -> None:
    assert markdown.render(PAGE) == MARKDOWN


def test_markdown_folds_what_is_long() -> None:
    rows = tuple((Code(str(number)),) for number in range(markdown.LONG + 1))
    text = markdown.render(Page("T", (("a", "b"),), (Section("S", "", (Table(("N",), rows),)),)))
    assert "<details><summary>Show</summary>\n\n| N |" in text
    assert text.endswith("| `12` |\n\n</details>\n")


# https://github.github.com/gfm/#backslash-escapes: other characters stay, also those of HTML's and Jinja's own.
TEXTS = [
    ("a_b *c* [d] #e ~f~", "a\\_b \\*c\\* \\[d\\] \\#e \\~f\\~"),
    ("<b>&amp;</b> \"q\" 'q'", "\\<b\\>&amp;\\</b\\> \"q\" 'q'"),
    ("{{ page.title }} {% if %}", "{{ page.title }} {% if %}"),
    ("a|b\\c", "a\\|b\\\\c"),
]


@pytest.mark.parametrize(("text", "escaped"), TEXTS)
def test_markdown_escapes_every_text(text: str, escaped: str) -> None:
    facts = Table((text,), ((text,), (Strong(text),), ((text, text),)), text)
    page = Page(text, ((text, text),), (Section(text, text, (facts,)),), (text,))
    assert markdown.render(page) == "\n".join([
        f"# {escaped}", "", "|  |  |", "| --- | --- |", f"| {escaped} | {escaped} |", "", f"> **Note:** {escaped}", "",
        f"## {escaped}", "", escaped, "", f"**{escaped}**", "", f"| {escaped} |", "| --- |", f"| {escaped} |",
        f"| **{escaped}** |", f"| {escaped}<br>{escaped} |", "",
    ])  # fmt: skip
