"""What a page has, by the standard library's parser, and texts that would harm one that is not careful."""

from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from urllib.parse import urlsplit

VOID = {"meta", "br", "input"}
HOSTILE = ["<script>alert(1)</script>", "a]]>b", "q\"'`&amp;", "x\u202etxt.exe", "nul\x00\x1b[31m", "<!--", "{{ 7 }}"]
SHOWN = [
    "<script>alert(1)</script>",
    "a]]>b",
    "q\"'`&amp;",
    "x\\u202etxt.exe",
    "nul\\u0000\\u001b[31m",
    "<!--",
    "{{ 7 }}",
]


class Page(HTMLParser):
    """What a page has: its elements' names, their attributes, its text; an element that is not closed is an error."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.names, self.attributes, self.text = [], [], []
        self.inline: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        # Of a style or a script the parser hands over the whole text at once.
        (self.inline if self._open[-1:] in (["style"], ["script"]) else self.text).append(data)


def require_self_contained(html):
    """Nothing in it is loaded, sent or run but the style and the script that its policy names."""
    page = Page(html)
    policies = [value for name, value in page.attributes if name == "content" and "default-src" in (value or "")]
    policy = policies[0]
    digests = [b64encode(sha256(text.encode()).digest()).decode() for text in page.inline]
    assert [part.split("'")[1] for part in policy.split("; ") if "sha256" in part] == [f"sha256-{d}" for d in digests]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert policy.endswith("base-uri 'none'; form-action 'none'")
    assert {"link", "img", "iframe", "object", "embed", "base", "form", "foreignobject"}.isdisjoint(page.names)
    names = {name for name, _ in page.attributes}
    assert {"src", "srcset", "style", "action", "xlink:href"}.isdisjoint(names)
    assert not any(name.startswith("on") for name in names)
    # Links lead to pages beside it, and into itself.
    links = [value or "" for name, value in page.attributes if name == "href"]
    assert all(not urlsplit(link).scheme and not urlsplit(link).netloc for link in links)
    assert "url(" not in html
    assert "@import" not in html
    return page
