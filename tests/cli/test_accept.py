"""``run --accept``: what it takes, and what it refuses before anything is loaded."""

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from tests.dialects.files import TABLE, lake

REFUSED = [
    (["--accept", "not_null.a"], "--accept and --reason belong together"),
    (["--reason", "known"], "--accept and --reason belong together"),
    (["--accept", "not_null.a", "--reason", " "], "--accept and --reason belong together"),
    (["--accept", "not_null.b", "--reason", "known"],
     "--accept 'not_null.b': no table has an expectation of this name. The file has not_null.a, rows."),
    (["--accept", "other:not_null.a", "--reason", "known"],
     "--accept 'other:not_null.a': no table has an expectation of this name"),
    (["--acceptance", '{"accept": ["not_null.b"], "reason": "known"}'],
     "--accept 'not_null.b': no table has an expectation of this name"),
    (["--acceptance", '{"accept": [], "reason": "known"}'],
     """--acceptance '{"accept": [], "reason": "known"}': accept:"""),
    (["--acceptance", '{"accept": ["rows"], "reason": " "}'], "--acceptance"),
    (["--acceptance", '{"accept": ["rows"], "reason": "known", "at": 1}'], "--acceptance"),
    (["--acceptance", "rows"], "--acceptance 'rows': Invalid JSON"),
    (["--acceptance", "{}", "--accept", "rows"], "expected --acceptance, or --accept with --reason, not both"),
    (["--acceptance", '{"accept": ["rows"], "reason": "known"}', "--canary"],
     "--accept 'rows': no table has an expectation of this name"),
    (["--acceptance", "{}", "--continuous"], "--acceptance is for a single load"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_what_cannot_be_accepted_is_refused(tmp_path, options, said):
    expect = [{"not_null": "a"}, {"rows": {"at_least": 1}}]
    file = lake(tmp_path, tables=[TABLE | {"expect": expect}])
    done = CliRunner().invoke(main, ["run", str(file), *options])
    assert done.exit_code == 2
    assert f"SPEC_INVALID: {said}" in done.stderr
