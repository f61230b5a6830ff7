"""Every option that a reader knows is on the page, as taken or with what to use instead."""

import re
from pathlib import Path

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.source.files import file_source, spark_options
from lakewriter.spec.source_formats import FORMATS

PAGE = (Path(__file__).parents[3] / "docs" / "sources.md").read_text("utf-8")
NAMED = {name.lower() for name in re.findall(r"`([A-Za-z0-9]+)(?:: [^`]*)?`", PAGE.partition("## Options")[2])}
KNOWN = {
    *spark_options.OF_LISTING,
    *spark_options._WITHOUT_EFFECT,
    *spark_options._ONLY,
    *(name for form in FORMATS.values() for name in form.taken or ()),
}


def test_a_reader_for_each_format_that_has_one():
    assert set(file_source._MAKE) == {form.name for form in FORMATS.values() if form.has_reader}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_option_is_on_the_page(name):
    assert name in NAMED


@pytest.mark.parametrize("form", sorted(file_source._MAKE))
def test_option_of_no_reader_is_refused_by_name(form):
    with pytest.raises(SpecInvalidError, match=r"options: nothing is 'x'.*engine: spark"):
        spark_options.take_options(form, {"nothing": "x"}, "s.t")
