"""Ids of loads from what the command line was given."""

import uuid

import pytest

from lakewriter.cli.job_ids import choose_job_id, require_job_id
from lakewriter.errors import SpecInvalidError

# uuid5(NAMESPACE_URL, "lakewriter://flights/2026-01-31T06:00:00+00:00"), as RFC 9562 defines version 5.
SIX = "87f07411-d156-595a-98f9-edc8aed92c50"
TIMES = [
    ("flights", "2026-01-31T06:00:00Z", SIX),
    ("flights", "2026-01-31T06:00:00.250Z", SIX),
    ("flights", "2026-01-31T07:00:00+01:00", SIX),
    ("other", "2026-01-31T06:00:00Z", "3f1a766c-58d8-53b1-8643-fcb72bb5b76d"),
]


@pytest.mark.parametrize(("pipeline", "time", "expected"), TIMES)
def test_load_of_a_time(pipeline, time, expected):
    assert choose_job_id(pipeline, None, time) == expected


def test_given_id_and_new_ones():
    assert choose_job_id("flights", "nightly.1", None) == "nightly.1"
    one, two = (choose_job_id("flights", None, None) for _ in range(2))
    assert one != two
    assert uuid.UUID(one).version == 4


WRONG = [
    ("a", "2026-01-31T06:00:00Z", "either --job-id or --scheduled-at"),
    (None, "2026-01-31T06:00:00", "'2026-01-31T06:00:00' is no time with a zone"),
    (None, "yesterday", "'yesterday' is no time with a zone"),
    (None, "", "'' is no time with a zone"),
    ("a/b", None, "job id 'a/b' is not of the form"),
]


@pytest.mark.parametrize(("job_id", "time", "said"), WRONG)
def test_wrong(job_id, time, said):
    with pytest.raises(SpecInvalidError, match=said):
        choose_job_id("flights", job_id, time)


def test_message_names_what_was_parsed():
    with pytest.raises(SpecInvalidError, match="outcome 'a/b' is not of the form"):
        require_job_id("a/b", "outcome")
