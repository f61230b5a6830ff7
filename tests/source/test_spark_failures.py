"""What Spark says, and the error it becomes: the kind decides whether a retry can help and what a user looks at."""

import pytest

from lakewriter.errors import from_text
from lakewriter.source.spark_failures import Origin

ORIGIN = Origin("events", "'in'", checkpoint="/ck/p/events/v0")
QUERY = "org.apache.spark.sql.streaming.StreamingQueryException: {0}\n=== Streaming Query ===\nCaused by: {0}"

FAILURES = [
    # what Spark says, the error's code, what of it is in the message
    (QUERY.format("org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment."),
     "SOURCE_UNREACHABLE", "Timed out waiting for a node assignment."),
    ("java.lang.RuntimeException: x\nCaused by: org.apache.kafka.common.config.ConfigException: No resolvable "
     "bootstrap urls given in bootstrap.servers", "SOURCE_UNREACHABLE", "No resolvable bootstrap urls"),
    ("org.postgresql.util.PSQLException: Connection to db:5432 refused.\nCaused by: java.net.ConnectException: "
     "Connection refused", "SOURCE_UNREACHABLE", "Connection refused"),
    ("Caused by: java.net.UnknownHostException: broker: Name or service not known", "SOURCE_UNREACHABLE", "broker"),
    ("Caused by: software.amazon.awssdk.services.s3.model.S3Exception: Please reduce your request rate. (Service: S3, "
     "Status Code: 503)", "SOURCE_UNREACHABLE", "reduce your request rate"),
    ("Caused by: software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: x",
     "SOURCE_UNREACHABLE", "Unable to execute HTTP request"),
    ("Caused by: java.nio.file.AccessDeniedException: s3a://b/k: Access Denied (Service: S3, Status Code: 403)",
     "SOURCE_FAILED", "cannot be read from 'in'"),
    ("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file a.parquet.", "SOURCE_FAILED", "a.parquet"),
    ("x.SparkException: ... Python worker exited unexpectedly (crashed)", "WORKER_DIED", "worker died"),
    # DAGScheduler and TaskSchedulerImpl of Spark 4.1, after executors were killed again and again.
    ("Job aborted due to stage failure: ResultStage 34 (collect at x.py:1) has failed the maximum allowable number of "
     "times: 4. Most recent failure reason:\norg.apache.spark.shuffle.FetchFailedException\n\tat x.y(z:1)\nCaused by: "
     "org.apache.spark.ExecutorDeadException: [INTERNAL_ERROR_NETWORK] The relative remote executor(Id: 5), which "
     "maintains the block data to fetch is dead. SQLSTATE: XX000", "WORKER_DIED", "executor(Id: 5)"),
    ("ShuffleMapStage 33 (x) has failed the maximum allowable number of times: 4. Most recent failure reason:\n"
     "org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location for shuffle 7 partition 2",
     "WORKER_DIED", "has failed the maximum allowable number of times"),
    ("Task 3 in stage 1.0 failed 4 times, most recent failure: Lost task 3.3 in stage 1.0 (TID 9) (h executor 2): "
     "TaskResultLost (result lost from block manager)", "WORKER_DIED", "TaskResultLost"),
    ("A shuffle map stage with indeterminate output was failed and retried. However, Spark cannot rollback the "
     "ResultStage 3 to re-process the input data, and has to fail this job.", "WORKER_DIED", "indeterminate output"),
    ("Job aborted due to stage failure: Master removed our application: FAILED", "WORKER_DIED", "removed our"),
    (QUERY.format("java.io.IOException: No space left on device\n\tat x.FileSystemBasedCheckpointFileManager.create("
                  "CheckpointFileManager.scala:1)"),
     "TIMEOUT", "the checkpoint '/ck/p/events/v0' cannot be read or written: No space left on device"),
    ("Caused by: java.net.ConnectException: Connection refused\n\tat x.HDFSMetadataLog.add(HDFSMetadataLog.scala:1)",
     "TIMEOUT", "the checkpoint '/ck/p/events/v0'"),
    ("Caused by: x.AccessDeniedException: s3a://b/c: 403\n\tat x.HDFSMetadataLog.add(HDFSMetadataLog.scala)",
     "SOURCE_FAILED", "the checkpoint '/ck/p/events/v0'"),
    ("lakewriter.errors.KeyExistsError: KEY_EXISTS: 'a' is taken.", "KEY_EXISTS", "'a' is taken."),
]  # fmt: skip


@pytest.mark.parametrize(("said", "code", "message"), FAILURES)
def test_kind_of_a_failure(said, code, message):
    error = ORIGIN.explain(said)
    assert error.code == code
    assert message in error.message


@pytest.mark.parametrize("said", ["java.io.IOException: No space left on device", "OSError: [Errno 28] ENOSPC"])
def test_a_full_disk_is_that_of_scratch_files(said):
    remedy = ORIGIN.explain(said).remedy
    assert remedy.startswith("The disk for Spark's scratch files is full: give them another folder (SPARK_LOCAL_DIRS, ")


def test_a_failure_without_a_known_reason_points_at_the_keys():
    missing = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `orders` cannot be found. SQLSTATE: 42P01"
    assert ORIGIN.explain(missing).remedy.startswith(
        "A statement reads the views beside it, by their names: read: {sql"
    )
    database = Origin("t", "jdbc orders")
    remedy = "Check 'url', and 'dbtable' or 'query', in read.options."
    assert database.explain("Table/View 'ORDERS' does not exist.").remedy == remedy


def test_zoned_timestamps_of_orc_are_for_the_tasks():
    said = (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'with'. SQLSTATE: 42601 (line 1, pos 10)\n\n== SQL ==\n"
        "timestamp with local time zone\n----------^^^\n"
    )
    assert "leave out engine: spark" in ORIGIN.explain(said).remedy


def test_a_load_alone_has_no_checkpoint():
    assert Origin("events", "'in'").explain("x\n\tat HDFSMetadataLog.add").code == "SOURCE_FAILED"


CHAIN = """Traceback (most recent call last):
  File "task.py", line 1, in shape
lakewriter.errors.ValueUnrepresentableError: VALUE_UNREPRESENTABLE: row 1: value "x" cannot be written.

{link}

Traceback (most recent call last):
  File "task.py", line 2, in run
{last}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
"""
DIRECT = "The above exception was the direct cause of the following exception:"
LATER = "During handling of the above exception, another exception occurred:"
CHAINS = [
    # how the last error came of the first one, the last one, the one that is told
    (DIRECT, 'x: VALUE_UNREPRESENTABLE: partition 0: row 1. The document is {"id": "x"}.',
     'partition 0: row 1. The document is {"id": "x"}.'),
    (DIRECT, "ValueError: nothing of ours", 'row 1: value "x" cannot be written.'),
    (LATER, "x: SOURCE_FAILED: nothing could be cleared away", 'row 1: value "x" cannot be written.'),
]  # fmt: skip


@pytest.mark.parametrize(("link", "last", "told"), CHAINS)
def test_error_that_says_most_is_told(link, last, told):
    error = from_text(CHAIN.format(link=link, last=last))
    assert error is not None
    assert (error.code, error.message) == ("VALUE_UNREPRESENTABLE", told)


OF_KAFKA = [
    # what Spark 4.1.1 and Kafka's client 3.9.1 say, the beginning of the remedy
    ("This server does not host this topic-partition.", "A topic of read.options 'subscribe' does not exist"),
    ("Fetch position FetchPosition{offset=1} is out of range for partition cut-0", "The topic has no such offset"),
    ("Partition cut-0's offset was changed from 6 to 2, some data may have been missed.", "The topic has no such"),
    ("Some data may have been lost because they are not available in Kafka any more; either the data was aged out by "
     "Kafka. Reason: Partitions Set(a-0) have been deleted.", "The topics no longer have messages that come next"),
    ("long overflow", "A message's time is beyond what a timestamp holds"),
    ('Cannot invoke "scala.collection.IterableOps.map(scala.Function1)" because the return value of '
     '"scala.Option.get()" is null', "Kafka's connector of Spark 4.1.0 and 4.1.1 fails so once"),
    ("starting offset can't be latest for batch queries on Kafka", "A single load reads what is there"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "remedy"), OF_KAFKA)
def test_remedies_of_kafka(said, remedy):
    error = ORIGIN.explain(f"x.SparkException: x\nCaused by: java.lang.IllegalStateException: {said}")
    assert (error.code, error.remedy[: len(remedy)]) == ("SOURCE_FAILED", remedy)
