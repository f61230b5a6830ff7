"""Rules of the jobs that tables share, taken out one at a time."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation, leave_out

_SEVERAL: Final = "files,glue,airbyte"

SHARED_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "shared-half": leave_out(
        "a table that a shared job did not bring back whole is staged again",
        "staging.shared_job:stage_share",
        "            is_whole = False",
        "            is_whole = True",
        _SEVERAL,
    ),
    "shared-lost": leave_out(
        "a job that Spark gives up leaves no table whole",
        "staging.shared_job:Attempted.whole",
        "    whole: bool = False",
        "    whole: bool = True",
        _SEVERAL,
    ),
    "shared-mixed": leave_out(
        "what a shared job returns goes to each table by its number",
        "staging.shared_job:stage_share",
        "yield json.dumps([number, texts, is_whole])",
        "yield json.dumps([0, texts, is_whole])",
        _SEVERAL,
    ),
    "shared-strays": leave_out(
        "after a second staging the uploads are looked for that no receipt names",
        "run.table_staging:stage_files",
        "is_again or ",
        "",
        _SEVERAL,
    ),
}
