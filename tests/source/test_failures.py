"""What Spark says, and the error it becomes: the kind decides whether a retry can help and what a user looks at."""

import pytest

from lakewriter.source.failures import Origin

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


def test_a_load_alone_has_no_checkpoint():
    assert Origin("events", "'in'").explain("x\n\tat HDFSMetadataLog.add").code == "SOURCE_FAILED"
