"""Ids of loads from what the command line was given."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewriter.errors import SpecInvalidError
from lakewriter.operate.job_ids import choose_job_id, require_job_id

# uuid5(NAMESPACE_URL, "lakewriter://flights/2026-01-31T06:00:00+00:00"), as RFC 9562 defines version 5.
SIX = "87f07411-d156-595a-98f9-edc8aed92c50"
MIDNIGHT = str(uuid.uuid5(uuid.NAMESPACE_URL, "lakewriter://flights/2026-01-31T00:00:00+00:00"))
TIMES = [
    ("flights", "2026-01-31T06:00:00Z", SIX),
    ("flights", "2026-01-31T06:00:00.250Z", SIX),
    ("flights", "2026-01-31T07:00:00+01:00", SIX),
    ("flights", "2026-01-31 06:00:00+00:00", SIX),
    # The same with T00:00:00+00:00: an orchestrator's date is the midnight that begins it.
    ("flights", "2026-01-31", MIDNIGHT),
    ("flights", "20260131", MIDNIGHT),
    ("flights", "2026-01-31T00:00:00Z", MIDNIGHT),
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
    ("a", "2026-01-31T06:00:00Z", "expected one of --job-id, --run-id and --scheduled-at"),
    (None, "2026-01-31T06:00:00", "'2026-01-31T06:00:00' is neither a time with a zone"),
    (None, "yesterday", "'yesterday' is neither a time with a zone"),
    (None, "", "'' is neither a time with a zone"),
    ("a/b", None, "job id 'a/b' cannot be part of a key"),
]


@pytest.mark.parametrize(("job_id", "time", "said"), WRONG)
def test_wrong(job_id, time, said):
    with pytest.raises(SpecInvalidError, match=said):
        choose_job_id("flights", job_id, time)


RUN_IDS = [
    # run id, job id: the digits are those of `printf %s RUN_ID | sha256sum | cut -c 1-32`
    ("ee0d4a0c-6b2f-4d3c-9f59-5a1b6f0b5a3e", "ee0d4a0c-6b2f-4d3c-9f59-5a1b6f0b5a3e"),
    ("nightly.1", "nightly.1"),
    ("scheduled__2026-01-31T06:00:00+00:00", "scheduled__2026-01-31T06-00-00-00-00--0a6fa1084d7f33f048a2a4f5db2f4808"),
    (
        "manual__2026-01-31T06:12:41.804512+00:00",
        "manual__2026-01-31T06-12-41.804512-00-00--dc5a8d19d16dbb9a07fb2df39e463441",
    ),
    (
        "dataset_triggered__2026-01-31T06:00:00.000001+00:00_Kq3xYz01",
        "dataset_triggered__2026-01-31T06-00-00.000001---da49c262e67fcdae53ba4ca01a3f16a2",
    ),
    (
        "flights/scheduled__2026-01-31T06:00:00+00:00/load",
        "flights-scheduled__2026-01-31T06-00-00-00-00-l--6377f68e85bf1739c1d8b9e5324a1cc3",
    ),
    ("_private", "private--3ce6c2497083e2edc91c32ab064c2d17"),
    ("läuft", "l-uft--870fa7cc61521952740a55fddb7f785a"),
    ("--", "run--d8156bae0c4243d3742fc4e9774d8ace"),
    ("a" * 80, "a" * 80),
    ("a" * 81, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa--8c48280d57fb88f161adf34d9f597d93"),
]


@pytest.mark.parametrize(("run_id", "expected"), RUN_IDS)
def test_load_of_a_run(run_id, expected):
    assert choose_job_id("flights", None, None, run_id) == expected
    assert require_job_id(expected) == expected


def test_no_job_id_is_of_two_runs():
    made = [choose_job_id("flights", None, None, run_id) for run_id, _ in RUN_IDS]
    # Who gives the job id of another run as a run id of her own names another load.
    again = [choose_job_id("flights", None, None, job_id) for job_id in made if "--" in job_id]
    assert len({*made, *again}) == len(made) + len(again)


@settings(max_examples=500)
@given(st.lists(st.text(alphabet="aZ0._-:+/ é", min_size=1, max_size=90).filter(str.strip), unique=True, max_size=20))
def test_run_ids_that_differ(run_ids):
    made = [choose_job_id("flights", None, None, run_id) for run_id in run_ids]
    assert len(set(made)) == len(run_ids)
    assert [require_job_id(job_id) for job_id in made] == made


def test_blank_run_id():
    with pytest.raises(SpecInvalidError, match="--run-id is blank"):
        choose_job_id("flights", None, None, " ")


def test_message_names_what_was_parsed():
    with pytest.raises(SpecInvalidError, match="outcome 'a/b' cannot be part of a key"):
        require_job_id("a/b", "outcome")
