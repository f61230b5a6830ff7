"""Rules of the jobs that tables share, taken out one at a time."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

SHARED_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "shared-half": Mutation(
        "a table that a shared job did not bring back whole is staged again",
        "is_whole = True",
        kinds="files,glue,airbyte",
    ),
    "shared-lost": Mutation(
        "a job that Spark gives up leaves no table whole",
        "whole: bool = True",
        kinds="files,glue,airbyte",
    ),
    "shared-mixed": Mutation(
        "what a shared job returns goes to each table by its number",
        "yield json.dumps([0, texts, is_whole])",
        kinds="files,glue,airbyte",
    ),
    "shared-strays": Mutation(
        "after a second staging the uploads are looked for that no receipt names",
        "repeats =  is_speculative(load.spark()) or is_any_stage_repeated(returned)",
        kinds="files,glue,airbyte",
    ),
}
