"""Files that change between runs: which streams a sync has, and what a continuous run finds when it starts again."""

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any, Final

from lakewriter.errors import LakeError
from tests.simulation.lakes import Lake, read_lake

VARIANTS: Final = 3
"""How many files a pipeline has beside its first one: each is read by the product itself."""


class Changes:
    """Those of one history; chance of their own leaves the histories without any what they were."""

    def __init__(self, lakes: list[Lake], seed: int, met: Counter[str], without: frozenset[str]) -> None:
        self.rng, self.met = random.Random(f"changes of {seed}"), met
        self.are_some = self.rng.random() < 0.5 and "changes" not in without
        self._variants = {
            lake.pipeline: [self._vary(lake) for _ in range(VARIANTS)]
            for lake in lakes
            if lake.kind == "batches" and self.are_some
        }
        self._syncs: dict[tuple[str, str], Lake] = {}

    def choose_file(self, lake: Lake) -> Lake:
        """The pipeline by the file that a continuous run finds when it starts; the caller takes its table out of it."""
        if lake.pipeline not in self._variants or self.rng.random() < 0.4:
            return lake
        self.met["changed file"] += 1
        return self.rng.choice(self._variants[lake.pipeline])

    def _vary(self, lake: Lake) -> Lake:
        content, rng = json.loads(lake.text), self.rng
        destination = content["destination"]
        if "uploadIntervalInSeconds" in destination:
            del destination["uploadIntervalInSeconds"]
            destination |= {"uploadInterval": rng.choice(["1m", "5m"])}
            destination |= rng.choice([{}, {"parquetConfig": {"rowGroupRowLimit": rng.choice([1, 2])}}])
            destination |= rng.choice([{}, {"fileSizeLimit": rng.choice([1, 1000])}])
        else:
            destination |= {"file_name_pattern": rng.choice(["part-{supa_job_id}-{seq}", "{date}-{uuid}"])}
        for table in content["tables"]:
            table |= self._vary_table(table)
        content |= {"on_failure": rng.choice(["continue", "stop"])}
        text = json.dumps(content)
        try:
            spec = read_lake(text)
        except LakeError as error:
            raise AssertionError(f"a continuous run's file is refused: {error}") from error
        kept = {"access": lake.spec.access, "shares_tables": lake.spec.shares_tables}
        return replace(lake, text=text, spec=spec.model_copy(update=kept))

    def _vary_table(self, table: dict[str, Any]) -> dict[str, Any]:
        """Another name of a binding whose place stays, another key, other columns in the reader's schema."""
        rng, changed = self.rng, dict[str, Any]()
        if "resource" in table:
            changed |= {"table": rng.choice([table["table"], f"{table['table']}_renamed"])}
        else:
            changed |= {"primary_key": rng.choice([["id"], []])}
        read = table["read"]
        columns = rng.choice([read["columns"], f"{read['columns']}, more_9 BIGINT"])
        return changed | {"read": read | {"columns": columns}}

    def choose_streams(self, lake: Lake, job: str) -> Lake:
        """The pipeline with the streams that the job's sync has: some are added, and some taken out, between two."""
        if lake.kind != "connector" or not self.are_some or len(lake.spec.tables) == 1:
            return lake
        base = job.partition(".r")[0]
        if (lake.pipeline, base) not in self._syncs:
            self._syncs[lake.pipeline, base] = self._take_streams(lake)
        return self._syncs[lake.pipeline, base]

    def _take_streams(self, lake: Lake) -> Lake:
        tables, source = lake.spec.tables, lake.spec.source
        kept = self.rng.sample(tables, self.rng.randint(1, len(tables)))
        chosen = tuple(table for table in tables if table in kept)
        if source is None or len(chosen) == len(tables):
            return lake
        self.met["other streams"] += 1
        names = ",".join(table.stream.name for table in chosen if table.stream is not None)
        run = source.model_copy(update={"command": (*source.command[:-1], names)})
        return replace(lake, spec=lake.spec.model_copy(update={"tables": chosen, "source": run}))
