"""What a shell is offered."""

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from lakewriter.cli.main import main
from tests.dialects.files import TABLE, lake

STAGES = {"deployment": {"account": "123456789012", "stages": {"dev": {}, "prod": {}, "production": {}}}}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script(shell):
    done = CliRunner().invoke(main, ["completion", shell], prog_name="lakewriter")
    assert (done.exit_code, "_LAKEWRITER_COMPLETE" in done.stdout) == (0, True)


def offer(arguments, incomplete):
    completer = ShellComplete(main, {}, "lakewriter", "_LAKEWRITER_COMPLETE")
    return [item.value for item in completer.get_completions(arguments, incomplete)]


OFFERS = [
    # words so far, the word that is begun, what is offered
    ([], "re", ["rebuild", "replay", "report", "reset"]),
    (["run", "FILE"], "--sch", ["--scheduled-at"]),
    (["run", "FILE", "--stage"], "", ["dev", "prod", "production"]),
    (["status", "FILE", "--stage"], "prod", ["prod", "production"]),
    (["run", "none.yaml", "--stage"], "", []),
    (["run", "--stage"], "", []),
    (["reset", "FILE"], "", ["accounts", "contacts"]),
    (["reset", "FILE"], "c", ["contacts"]),
    (["reset", "none.yaml"], "", []),
    (["airbyte"], "w", ["write"]),
]


@pytest.mark.parametrize(("arguments", "incomplete", "expected"), OFFERS)
def test_offers(tmp_path, arguments, incomplete, expected):
    tables = [TABLE, TABLE | {"table": "contacts"}]
    file = lake(tmp_path, tables=tables, top=STAGES)
    assert offer([str(file) if word == "FILE" else word for word in arguments], incomplete) == expected
