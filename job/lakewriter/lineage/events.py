"""Make events of what is known, by the models of OpenLineage's client.

Only the thread that sends imports this: the client takes a second to import.
"""

import sys
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from openlineage.client import event_v2, facet_v2
from openlineage.client.uuid import generate_static_uuid

import lakewriter
from lakewriter.lineage.facts import Column, Dataset, Moment, Output, Run, Statistics

INTEGRATION: Final = "LAKEWRITER"
PRODUCER: Final = f"urn:lakewriter:{lakewriter.__version__}"


def make_event(moment: Moment) -> event_v2.RunEvent:
    """Return the event for a moment of a run."""
    run, output = moment.run, moment.output
    return event_v2.RunEvent(
        eventType=event_v2.RunState[moment.type],
        eventTime=_write_time(moment.at),
        producer=PRODUCER,
        run=event_v2.Run(make_run_id(run), _make_run_facets(moment)),
        job=event_v2.Job(run.namespace, run.job, _make_job_facets(run)),
        inputs=[_make_input(named, moment.fields) for named in moment.inputs],
        outputs=[_make_output(output, moment.inputs, moment.statistics)] if output is not None else [],
    )


def make_run_id(run: Run) -> str:
    """Return a UUID of version 7 that is the same for every event of a run."""
    return str(generate_static_uuid(run.started, run.identity.encode()))


def _make_run_facets(moment: Moment) -> dict[str, Any]:
    run, facets = moment.run, dict[str, Any]()
    # A process that loads has imported Spark.
    spark = getattr(sys.modules.get("pyspark"), "__version__", None)
    if spark is not None:
        facets["processing_engine"] = facet_v2.processing_engine_run.ProcessingEngineRunFacet(
            version=spark, name="spark", openlineageAdapterVersion=lakewriter.__version__, producer=PRODUCER
        )
    if run.parent is not None:
        parent = facet_v2.parent_run
        facets["parent"] = parent.ParentRunFacet(
            run=parent.Run(make_run_id(run.parent)),
            job=parent.Job(run.parent.namespace, run.parent.job),
            producer=PRODUCER,
        )
    if run.nominal_time is not None:
        time = _write_time(run.nominal_time)
        facets["nominalTime"] = facet_v2.nominal_time_run.NominalTimeRunFacet(time, producer=PRODUCER)
    if moment.error is not None:
        facets["errorMessage"] = facet_v2.error_message_run.ErrorMessageRunFacet(
            moment.error, "PYTHON", producer=PRODUCER
        )
    return facets


def _make_job_facets(run: Run) -> dict[str, Any]:
    processing = "STREAMING" if run.is_streaming else "BATCH"
    return {"jobType": facet_v2.job_type_job.JobTypeJobFacet(processing, INTEGRATION, run.kind, producer=PRODUCER)}


def _make_input(named: Dataset, fields: Iterable[Column]) -> event_v2.InputDataset:
    return event_v2.InputDataset(named.namespace, named.name, facets=_make_schema(fields))


def _make_output(output: Output, inputs: Iterable[Dataset], statistics: Statistics | None) -> event_v2.OutputDataset:
    facets = {**_make_schema(output.columns), **_make_column_lineage(output, inputs), **_make_table_facets(output)}
    written = dict[str, Any]()
    if statistics is not None:
        written["outputStatistics"] = facet_v2.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=statistics.rows, size=statistics.size, fileCount=statistics.files, producer=PRODUCER
        )
    return event_v2.OutputDataset(output.dataset.namespace, output.dataset.name, outputFacets=written, facets=facets)


def _make_table_facets(output: Output) -> dict[str, Any]:
    """Return a table's facets beside its columns: its name in the catalog, its format, the load's effect on rows."""
    facets = dict[str, Any]()
    other = output.find_symlink() if output.find_symlink is not None else None
    if other is not None:
        models = facet_v2.symlinks_dataset
        identifier = models.Identifier(other.namespace, other.name, "TABLE")
        facets["symlinks"] = models.SymlinksDatasetFacet([identifier], producer=PRODUCER)
    if output.is_iceberg:
        facets["storage"] = facet_v2.storage_dataset.StorageDatasetFacet("iceberg", "parquet", producer=PRODUCER)
    if output.version is not None:
        facets["version"] = facet_v2.dataset_version_dataset.DatasetVersionDatasetFacet(
            output.version, producer=PRODUCER
        )
    if output.is_replaced:
        change = facet_v2.lifecycle_state_change_dataset
        facets["lifecycleStateChange"] = change.LifecycleStateChangeDatasetFacet(
            change.LifecycleStateChange.OVERWRITE, producer=PRODUCER
        )
    return facets


def _make_schema(columns: Iterable[Column]) -> dict[str, Any]:
    models = facet_v2.schema_dataset
    fields = [models.SchemaDatasetFacetFields(column.name, column.type) for column in columns]
    return {"schema": models.SchemaDatasetFacet(fields, producer=PRODUCER)} if fields else {}


def _make_column_lineage(output: Output, inputs: Iterable[Dataset]) -> dict[str, Any]:
    """Return the sources of each column's values; several inputs have the same fields."""
    models, fields = facet_v2.column_lineage_dataset, {}
    for column in (column for column in output.columns if column.sources and inputs):
        subtype = "IDENTITY" if column.is_identity else "TRANSFORMATION"
        way = models.Transformation("DIRECT", subtype, masking=False)
        fields[column.name] = models.Fields(
            [models.InputField(named.namespace, named.name, source, [way])
             for named in inputs for source in column.sources]
        )  # fmt: skip
    return {"columnLineage": models.ColumnLineageDatasetFacet(fields, producer=PRODUCER)} if fields else {}


def _write_time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")
