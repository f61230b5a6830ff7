"""Mistakes in a lake.yaml and the whole of what is said: file, line, key, value, what was expected, what to do.

The messages were read aloud. Each has the keys of its own destination, and the line at fault.
"""

from lakewriter.cast.sql_types import TYPE_NAMES

S = """\
pipeline: flights
destination:
  type: supaflow-s3-data-lake
  s3_bucket_name: acme-lake
  bucket_region: us-east-1
  s3_path_prefix: data
tables:
  - table: flights
    schema: public
    read: {format: csv, path: flights.csv}
deployment:
  stages: {dev: {}}
"""
A = """\
pipeline: users
destination:
  type: airbyte-s3
  s3_bucket_name: acme-lake
  s3_bucket_path: sync
  s3_bucket_region: us-east-1
  format: {format_type: CSV}
tables:
  - table: users
    read: {format: csv, path: users.csv}
"""
E = """\
pipeline: changes
destination:
  type: estuary-s3-parquet
  bucket: acme-lake
  region: us-east-1
  uploadIntervalInSeconds: 300
tables:
  - source: acme/changes
    primary_key: [id]
    read: {format: json, path: changes.json}
    resource: {pathPrefix: /changes}
"""

MISTAKES = [
    # a file, what of it is replaced by what, and what is said
    (S, "pipeline: flights", "pipeline: My Flights", [
     "lake.yaml:1: pipeline: 'My Flights': expected lower-case letters, digits, '-' and '_', at most 63, a "
     "letter or digit first."]),
    (S, "pipeline: flights\n", "", [
     "lake.yaml: pipeline: is required, such as pipeline: shop."]),
    (S, "pipeline: flights", "pipeline: 5", [
     "lake.yaml:1: pipeline: 5: expected text, in quotes."]),
    (S, "pipeline: flights", "pipeline:", [
     "lake.yaml:1: pipeline: nothing: expected text, such as pipeline: shop."]),
    (S, "pipeline: flights", "piplin: flights", [
     "lake.yaml: pipeline: is required, such as pipeline: shop.",
     "lake.yaml:1: piplin: unknown key, with value 'flights'; did you mean 'pipeline'?"]),
    (S, "tables:\n", "tables: []\nother:\n", [
     "lake.yaml:7: tables: an empty list: expected at least one table.",
     "lake.yaml:8: other: unknown key, with value a list; known keys: catalog_account, checkpoint, contract, "
     "delta_encodings, deployment, destination, expect, format_version, interval, interval_seconds, keep_loads_days, "
     "limits, lineage, maintenance, on_bad_row, on_failure, on_violation, pipeline, projection, put_metrics, readers, "
     "refresh, repeated, shares_tables, source, source_root, tables, undo."]),
    (S, "tables:\n", "readers: [athena, snowflak]\ntables:\n", [
     "lake.yaml:7: readers.1: 'snowflak' is not allowed; expected 'athena', 'bigquery', 'duckdb', 'hive', 'iceberg', "
     "'parquet-java', 'pyarrow', 'redshift', 'snowflake', 'spark3', 'spark4' or 'trino'; did you mean "
     "'snowflake'?"]),
    (S, "type: supaflow-s3-data-lake", "type: supaflow-s3-datalake", [
     "lake.yaml:3: destination.type: 'supaflow-s3-datalake' is not a known destination; expected 'supaflow-s3', "
     "'supaflow-s3-data-lake', 'airbyte-s3', 'heropixel-s3', 'estuary-s3-parquet' or 'lakewriter-s3'; did you mean "
     "'supaflow-s3-data-lake'?"]),
    (S, "type: supaflow-s3-data-lake", "type: snowflake", [
     "lake.yaml:3: destination.type: 'snowflake' is not a known destination; expected 'supaflow-s3', "
     "'supaflow-s3-data-lake', 'airbyte-s3', 'heropixel-s3', 'estuary-s3-parquet' or 'lakewriter-s3'."]),
    (S, "  type: supaflow-s3-data-lake\n", "", [
     "lake.yaml:2: destination.type: is required; expected 'supaflow-s3', 'supaflow-s3-data-lake', "
     "'airbyte-s3', 'heropixel-s3', 'estuary-s3-parquet' or 'lakewriter-s3'."]),
    (S, "type: supaflow-s3-data-lake", "type: [a, b]", [
     "lake.yaml:3: destination.type: a list is not a known destination; expected 'supaflow-s3', "
     "'supaflow-s3-data-lake', 'airbyte-s3', 'heropixel-s3', 'estuary-s3-parquet' or 'lakewriter-s3'."]),
    (S, "s3_bucket_name: acme-lake", "s3_bucket_name: Acme_Lake", [
     "lake.yaml:4: destination.s3_bucket_name: 'Acme_Lake': expected a bucket name: 3 to 63 lower-case letters, "
     "digits, '.' and '-'."]),
    (S, "s3_bucket_name: acme-lake", "s3_bucket_name:", [
     "lake.yaml:4: destination.s3_bucket_name: nothing: expected text, such as s3_bucket_name: acme-lake."]),
    (S, "s3_bucket_name: acme-lake", "bucket: acme-lake", [
     "lake.yaml:2: destination.s3_bucket_name: is required, such as s3_bucket_name: acme-lake.",
     "lake.yaml:4: destination.bucket: unknown key, with value 'acme-lake'; did you mean 's3_bucket_name'?"]),
    (S, "s3_bucket_name: acme-lake", "s3_bucket: acme-lake", [
     "lake.yaml:2: destination.s3_bucket_name: is required, such as s3_bucket_name: acme-lake.",
     "lake.yaml:4: destination.s3_bucket: unknown key, with value 'acme-lake'; did you mean 's3_bucket_name'?"]),
    (S, "bucket_region: us-east-1", "bucket_region: Virginia", [
     "lake.yaml:5: destination.bucket_region: 'Virginia': expected an AWS region such as 'us-east-1'."]),
    (S, "bucket_region: us-east-1", "region: us-east-1", [
     "lake.yaml:2: destination.bucket_region: is required.",
     "lake.yaml:5: destination.region: unknown key, with value 'us-east-1'; did you mean 'bucket_region'?"]),
    (S, "s3_path_prefix: data", "s3_path_prefix: s3://acme-lake/data", [
     "lake.yaml:6: destination.s3_path_prefix: 's3://acme-lake/data': expected a path inside the bucket, such "
     "as 'data-lake/production'."]),
    (S, "s3_path_prefix: data", "s3_path_prefix: 2024-01-02", [
     "lake.yaml:6: destination.s3_path_prefix: 2024-01-02: expected text, in quotes."]),
    (S, "s3_path_prefix: data", "s3_path_prefix: yes", [
     "lake.yaml:6: destination.s3_path_prefix: true: expected text, in quotes."]),
    (S, "s3_path_prefix: data", "upload_parallelism: 11", [
     "lake.yaml:6: destination.upload_parallelism: 11: expected at most 10."]),
    (S, "s3_path_prefix: data", "upload_parallelism: 0", [
     "lake.yaml:6: destination.upload_parallelism: 0: expected at least 1."]),
    (S, "s3_path_prefix: data", "upload_parallelism: many", [
     "lake.yaml:6: destination.upload_parallelism: 'many': expected a whole number."]),
    (S, "s3_path_prefix: data", "upload_parallelism: 2.5", [
     "lake.yaml:6: destination.upload_parallelism: 2.5: expected a whole number."]),
    (S, "s3_path_prefix: data", "role_wait_seconds: .nan", [
     "lake.yaml:6: destination.role_wait_seconds: .nan: expected at most 600."]),
    (S, "s3_path_prefix: data", "role_wait_seconds: .inf", [
     "lake.yaml:6: destination.role_wait_seconds: .inf: expected at most 600."]),
    (S, "s3_path_prefix: data", "update_aws_glue_catalog: maybe", [
     "lake.yaml:6: destination.update_aws_glue_catalog: 'maybe': expected true or false."]),
    (S, "s3_path_prefix: data", "partition_strategy: HOURLY", [
     "lake.yaml:6: destination.partition_strategy: 'HOURLY' is not allowed; expected 'NONE', 'DAY', 'HOUR' or "
     "'SYNC_ID'; did you mean 'HOUR'?"]),
    (S, "s3_path_prefix: data", "partition_stratgy: DAY", [
     "lake.yaml:6: destination.partition_stratgy: unknown key, with value 'DAY'; did you mean 'partition_strategy'?"]),
    (S, "s3_path_prefix: data", "file_name_pattern: part-{seq}", [
     "lake.yaml:6: destination.file_name_pattern: 'part-{seq}': two loads would give their files one name; add "
     "{supa_job_id} or {uuid}."]),
    (S, "s3_path_prefix: data", "file_name_pattern: '{job_id}-{seq}'", [
     "lake.yaml:6: destination.file_name_pattern: '{job_id}-{seq}': '{job_id}' is no variable; known: {seq}, "
     "{uuid}, {timestamp}, {supa_job_id}, {date}; did you mean '{supa_job_id}'?"]),
    (S, "s3_path_prefix: data", "iam_role_arn: LakeWriter", [
     "lake.yaml:6: destination.iam_role_arn: 'LakeWriter': expected a role's ARN such as "
     "'arn:aws:iam::123456789012:role/LakeWriter'."]),
    (S, "s3_path_prefix: data", "external_id: abc", [
     "lake.yaml:6: destination.external_id: 'external_id' needs 'iam_role_arn' beside it."]),
    (S, "s3_path_prefix: data", "access_key_id: abc", [
     "lake.yaml:6: destination.access_key_id: 'access_key_id' and 'secret_access_key' are given both or not at all."]),
    (S, "s3_path_prefix: data", "secret_access_key: [hush]", [
     "lake.yaml:6: destination.secret_access_key: (not shown): expected text."]),
    (S, "s3_path_prefix: data", "external_id: ${ENV:HUSH}\n  iam_role_arn: arn:aws:iam::123456789012:role/L", [
     "lake.yaml:6: destination.external_id: (not shown): expected ${env:NAME}, ${secret:ARN[:json-key]} or "
     "${ssm:NAME}, and nothing around it."]),
    (S, "s3_path_prefix: data", "custom_s3_endpoint: minio", [
     "lake.yaml:6: destination.custom_s3_endpoint: 'minio': expected a URL such as 'https://s3.example.com'."]),
    (S, "s3_path_prefix: data", "table_format: DELTA", [
     "lake.yaml:6: destination.table_format: 'DELTA': expected 'PARQUET' or 'ICEBERG'."]),
    (S, "s3_path_prefix: data", "iceberg_catalog: GLUE", [
     "lake.yaml:6: destination.iceberg_catalog: 'iceberg_catalog' is only for 'table_format: ICEBERG'."]),
    (S, "s3_path_prefix: data", "table_format: ICEBERG\n  partition_strategy: DAY", [
     "lake.yaml:7: destination.partition_strategy: 'partition_strategy' is only for 'table_format: PARQUET'."]),
    (S, "s3_path_prefix: data", "table_format: ICEBERG\n  iceberg_catalog: SNOWFLAKE_OPEN_CATALOG", [
     "lake.yaml:2: destination: SNOWFLAKE_OPEN_CATALOG needs 'catalog_endpoint', 'catalog_name', 'client_id', "
     "'client_secret'."]),
    (S, "s3_path_prefix: data", "destination_table_handling: REPLACE", [
     "lake.yaml:6: destination.destination_table_handling: 'REPLACE' is not allowed; expected 'APPEND' or 'FAIL'."]),
    (S, "read: {format: csv, path: flights.csv}", "read: {}", [
     "lake.yaml:10: tables.0.read: expected either 'format' or 'sql'."]),
    (S, "read: {format: csv, path: flights.csv}", "read: flights.csv", [
     "lake.yaml:10: tables.0.read: 'flights.csv': expected a mapping, such as read: {format: csv, path: "
     "orders/*.csv}."]),
    (S, "path: flights.csv", "pth: flights.csv", [
     "lake.yaml:10: tables.0.read.pth: unknown key, with value 'flights.csv'; did you mean 'path'?"]),
    (S, "path: flights.csv", "path: [a.csv, 5]", [
     "lake.yaml:10: tables.0.read.path.1: 5: expected text, in quotes."]),
    (S, "schema: public", "primary_key: flight_id", [
     "lake.yaml:9: tables.0.primary_key: 'flight_id': expected a list, such as [flight_id]."]),
    (S, "schema: public", "cursor_lag: 2 hours", [
     "lake.yaml:9: tables.0.cursor_lag: table 'flights' has cursor_lag, and no cursor to take it from. Name the "
     "cursor, or leave cursor_lag out."]),
    (S, "schema: public", "cursor: at\n    cursor_lag: soon", [
     "lake.yaml:10: tables.0.cursor_lag: 'soon': expected a number, or a time such as '2 hours'."]),
    (S, "schema: public", "mode: apend", [
     "lake.yaml:9: tables.0.mode: 'apend' is not allowed; expected 'append', 'overwrite', 'refresh', "
     "'replace_partitions' or 'merge'; did you mean 'append'?"]),
    (S, "schema: public", "partition_by: [week(at)]", [
     "lake.yaml:9: tables.0.partition_by.0: 'week(at)': expected a column, or year(c), month(c), day(c), "
     "hour(c), bucket(16, c) or truncate(4, c)."]),
    (S, "schema: public", "columns: [note]", [
     "lake.yaml:9: tables.0.columns: a list: expected a mapping, such as columns: {amount: 'decimal(12,2)'}."]),
    (S, "schema: public", "columns: {note: 5}", [
     "lake.yaml:9: tables.0.columns.note: 5: expected text or a mapping."]),
    (S, "schema: public", "columns: {note: money}", [
     f"lake.yaml:9: tables.0.columns.note: 'money': there is no type 'money'. Types: {TYPE_NAMES}."]),
    (S, "schema: public", "columns: {note: timestmp}", [
     "lake.yaml:9: tables.0.columns.note: 'timestmp': there is no type 'timestmp'; did you mean 'timestamp'? "
     f"Types: {TYPE_NAMES}."]),
    (S, "schema: public", "columns: {note: {typ: int}}", [
     "lake.yaml:9: tables.0.columns.note.typ: unknown key, with value 'int'; did you mean 'type'?"]),
    (S, "schema: public", "columns: {note: {from: epoch_ms}}", [
     "lake.yaml:9: tables.0.columns.note: it has no 'type'; expected one such as 'timestamp', or 'renamed_from' "
     "alone."]),
    (S, "schema: public", "columns: {note: {renamed_from: text}, word: {renamed_from: text}}", [
     "lake.yaml:9: tables.0.columns: two columns were renamed from 'text'; expected one."]),
    (S, "schema: public", "columns: {note: {renamed_from: text}, Text: int}", [
     "lake.yaml:9: tables.0.columns.note: 'note' was renamed from 'text', which is a column itself; rename one at a "
     "time."]),
    (S, "schema: public", "columns: {note: {renamed_from: text}}", [
     "lake.yaml:8: tables.0.renamed_from: table 'flights' has renamed_from, which only Iceberg tables have: other "
     "files have their columns by name. Set table_format: ICEBERG, or leave it out: the column is then added as a new "
     "one."]),
    (S, "schema: public", "columns: {note: {type: timestamp, from: epoch_min}}", [
     "lake.yaml:9: tables.0.columns.note.from: 'epoch_min' is not allowed; expected 'epoch_s', 'epoch_ms', "
     "'epoch_us', 'epoch_ns', 'epoch_days' or 'base64'; did you mean 'epoch_ms' or 'epoch_ns'?"]),
    (S, "schema: public", "columns: {note: {type: int, from: epoch_s}}", [
     "lake.yaml:9: tables.0.columns.note.from: 'epoch_s': it is for timestamp and timestamp_ntz, not for int."]),
    (S, "schema: public", "columns: {note: {type: date, format: yy-MM-dd}}", [
     "lake.yaml:9: tables.0.columns.note.format: 'yy-MM-dd': it has 'yy', which is not taken: years have four digits: "
     "write yyyy, and correct the source."]),
    (S, "schema: public", "columns: {note: {type: date, from: epoch_s}}", [
     "lake.yaml:9: tables.0.columns.note.from: 'epoch_s': it is for timestamp and timestamp_ntz, not for date."]),
    (S, "schema: public", "columns: {note: {type: timestamp, from: epoch_s, format: yyyy-MM-dd}}", [
     "lake.yaml:9: tables.0.columns.note.format: 'yyyy-MM-dd': expected 'from' or 'format', got both."]),
    (S, "schema: public", "columns: {note: {type: timestamp_ntz, format: yyyy-MM-dd XXX}}", [
     "lake.yaml:9: tables.0.columns.note.format: 'yyyy-MM-dd XXX': it has an offset or a zone, which timestamp_ntz has "
     "not."]),
    (S, "path: flights.csv}", "path: flights.csv, columns: id BIGINT NAME}", [
     f"lake.yaml:10: tables.0.read.columns: 'id BIGINT NAME': unexpected 'NAME'. Types: {TYPE_NAMES}."]),
    (S, "  - table: flights", "  - table: ''", [
     "lake.yaml:8: tables.0.table: '': expected text that is not blank."]),
    (S, "  - table: flights", "  - source: flights", [
     "lake.yaml:8: tables.0.source: 'source' is only for the destination 'estuary-s3-parquet', and this one is "
     "'supaflow-s3-data-lake'. Name the table with 'table', and its namespace with 'schema'."]),
    (S, "  - table: flights\n    schema: public\n    read: {format: csv, path: flights.csv}", "  - flights", [
     "lake.yaml:8: tables.0: 'flights': expected a mapping."]),
    (S, "  stages: {dev: {}}", "  existing: {kms_key_arn: my-key}", [
     "lake.yaml:12: deployment.existing.kms_key_arn: 'my-key': expected a key's ARN such as "
     "'arn:aws:kms:us-east-1:123456789012:key/0f1e2d3c'."]),
    (S, "  stages: {dev: {}}", "  network: {subnet_ids: [], security_group_ids: [sg-1]}", [
     "lake.yaml:12: deployment.network.subnet_ids: an empty list: expected at least one entry."]),
    (S, "  stages: {dev: {}}", "  schedule: {cron: '0 * * * *'}", [
     "lake.yaml:12: deployment.schedule.cron: 'cron' has 5 fields in '0 * * * *'; expected six, such as "
     "'0 * * * ? *'."]),
    (S, "  stages: {dev: {}}", "  schedule: {}", [
     "lake.yaml:12: deployment.schedule: expected either 'cron' or 'rate'."]),
    (S, "  stages: {dev: {}}", "  account: 123456789012", [
     "lake.yaml:12: deployment.account: 123456789012: expected text, in quotes."]),
    (S, "  stages: {dev: {}}", "  trust: [{vendor: snowflake, external_id: x1}]", [
     "lake.yaml:12: deployment.trust.0.vendor: 'snowflake' is not allowed; expected 'supaflow', 'airbyte-cloud' "
     "or 'heropixel-cloud'."]),
    (S, "  stages: {dev: {}}", "  spark: {driver: {cores: 3}}", [
     "lake.yaml:12: deployment.spark.driver.cores: 3 is not allowed; expected 1, 2, 4, 8 or 16."]),
    (S, "  stages: {dev: {}}", "  log_retention_days: 31", [
     "lake.yaml:12: deployment.log_retention_days: 31 is not allowed; expected 1, 3, 5, 7, 14, 30, 60, 90, 120, "
     "150, 180, 365, 400, 545 or 731."]),
    (S, "  stages: {dev: {}}", "  role_path: teams", [
     "lake.yaml:12: deployment.role_path: 'teams': expected a path such as '/teams/data/'."]),
    (S, "  stages: {dev: {}}", "  stages: {Dev: {}}", [
     "lake.yaml:12: deployment.stages.Dev: stage 'Dev': expected at most 16 lower-case letters and digits, a letter "
     "first."]),
    (S, "deployment:\n", "schedule: {rate: 1 hour}\ndeployment:\n", [
     "lake.yaml:11: schedule: unknown key, with value a mapping; it goes into 'deployment'."]),
    (S, "deployment:\n", "keep_loads_days: 0\ndeployment:\n", [
     "lake.yaml:11: keep_loads_days: 0: expected at least 1."]),
    (S, "deployment:\n", "maintenance: {compact: true}\ndeployment:\n", [
     "lake.yaml:11: maintenance.compact: 'compact' is done by Glue's optimizers; expected 'optimizer_role', the role "
     "they take, or 'by: run' or 'by: command'."]),
    (S, "deployment:\n", "maintenance: {by: glue, expire_snapshots_days: 5}\ndeployment:\n", [
     "lake.yaml:11: maintenance.by: 'by' is 'glue'; expected 'optimizer_role', the role that its optimizers take."]),
    (S, "deployment:\n", "maintenance: {expire_snapshots_days: 0.5, optimizer_role: nyc}\ndeployment:\n", [
     "lake.yaml:11: maintenance.expire_snapshots_days: 'expire_snapshots_days' is 0.5, and Glue's optimizers "
     "expire snapshots by whole days; expected such a number, or no 'optimizer_role'."]),
    (S, "deployment:\n", "maintenance: {expire_snapshots_days: 0.01}\ndeployment:\n", [
     "lake.yaml:11: maintenance.expire_snapshots_days: 0.01: expected at least 0.05."]),
    (S, "deployment:\n", "maintenance: {by: glue, compact: true}\ndeployment:\n", [
     "lake.yaml:11: maintenance.compact: 'compact' is done by Glue's optimizers; expected 'optimizer_role', the role "
     "they take."]),
    (S.replace("  s3_path_prefix: data\n", "  table_format: ICEBERG\n"), "deployment:\n",
     "maintenance: {by: service}\ndeployment:\n", [
     "lake.yaml:11: maintenance.by: 'service' leaves the upkeep to Amazon S3 Tables, and these tables are in another "
     "catalog. Set 'by: glue', 'by: run' or 'by: command'."]),
    (S.replace("  s3_path_prefix: data\n", "  table_format: ICEBERG\n"), "deployment:\n",
     "maintenance: {by: command, delete_orphans_days: 30}\ndeployment:\n", [
     "lake.yaml:11: maintenance.delete_orphans_days: 30 is too few: an upload of a load may be completed for 30 days "
     "(deployment.abort_incomplete_uploads_days), and is as old as its beginning; expected 31 or more."]),
    (S, "deployment:\n", "maintenance: {by: run, compact: false}\ndeployment:\n", [
     "lake.yaml:11: maintenance.by: 'by' is 'run', which compacts, and 'compact' is false; expected one of them."]),
    (S, "deployment:\n", "maintenance: {every: 1 hour}\ndeployment:\n", [
     "lake.yaml:11: maintenance.every: 'every' is the time between compactions of a continuous run; expected "
     "'by: run'."]),
    (S, "deployment:\n", "maintenance: {by: run, every: 1h}\ndeployment:\n", [
     "lake.yaml:11: maintenance.every: '1h': expected a time such as '26 hours'."]),
    (S, "deployment:\n", "maintenance: {by: run, optimizer_role: nyc}\ndeployment:\n", [
     "lake.yaml:11: maintenance.optimizer_role: 'optimizer_role' has nothing to do; expected 'expire_snapshots_days' "
     "or 'delete_orphans_days'."]),
    (S.replace("  s3_path_prefix: data\n", "  table_format: ICEBERG\n"), "deployment:\n",
     "maintenance: {by: run}\ndeployment:\n", [
     "lake.yaml:11: maintenance.by: 'run' lets a continuous run compact between its batches, and this file has no "
     "'checkpoint' for one. Set checkpoint, or 'by: command' and schedule 'lakewriter maintain'."]),
    (S, "deployment:\n", "maintenance: {delete_orphans_days: 2}\ndeployment:\n", [
     "lake.yaml:11: maintenance.delete_orphans_days: 2: expected at least 3."]),
    (S, "deployment:\n", "maintenance: {optimizer_role: nyc}\ndeployment:\n", [
     "lake.yaml:11: maintenance.optimizer_role: 'optimizer_role' has nothing to do; expected 'expire_snapshots_days', "
     "'compact' or 'delete_orphans_days'."]),
    (S, "deployment:\n", "maintenance: {compact: true, optimizer_role: /nyc}\ndeployment:\n", [
     "lake.yaml:11: maintenance.optimizer_role: '/nyc': expected a role's name, with its path if it has one, such as "
     "'data/nyc-optimizers', or its ARN."]),
    (S, "deployment:\n", "maintenance: {expire_snapshots_days: 5}\ndeployment:\n", [
     "lake.yaml:11: maintenance: only Iceberg tables have snapshots to expire and files to compact; these are Parquet "
     "files. Leave 'maintenance' out."]),
    (S, "deployment:\n", "catalog_account: 123456789012\ndeployment:\n", [
     "lake.yaml:11: catalog_account: 123456789012: expected text, in quotes."]),
    (S, "deployment:\n", "catalog_account: \"1234\"\ndeployment:\n", [
     "lake.yaml:11: catalog_account: '1234': expected 12 digits, in quotes."]),
    (S, "deployment:\n", "catalog_account: \"123456789012\"\ndeployment:\n", [
     "lake.yaml:11: catalog_account: it is the account of a Glue Data Catalog, and these tables are in none. Leave it "
     "out."]),
    (S.replace("  s3_path_prefix: data\n", "  table_format: ICEBERG\n"), "deployment:\n",
     "catalog_account: \"123456789012\"\nmaintenance: {compact: true, optimizer_role: nyc}\ndeployment:\n", [
     "lake.yaml:12: maintenance.optimizer_role: Glue's optimizers take a role of the catalog's own account, and "
     "'catalog_account' is 123456789012. Leave it out, and have that account set them."]),
    (S, "deployment:\n", "on_failure: skip\ndeployment:\n", [
     "lake.yaml:11: on_failure: 'skip' is not allowed; expected 'continue' or 'stop'."]),
    (S, "deployment:\n", "lineage: log\ndeployment:\n", [
     "lake.yaml:11: lineage: 'log': expected a mapping."]),
    (S, "deployment:\n", "lineage: {url: x}\ndeployment:\n", [
     "lake.yaml:11: lineage.to: is required.",
     "lake.yaml:11: lineage.url: unknown key, with value (not shown); known keys: allow_insecure, api_key, endpoint, "
     "namespace, timeout_seconds, to."]),
    (S, "deployment:\n", "lineage: {to: 's3://acme-lake/events'}\ndeployment:\n", [
     "lake.yaml:11: lineage.to: 's3://acme-lake/events': expected 'log', a path on this machine, or a URL that begins "
     "with https:// or http://."]),
    (S, "deployment:\n", "lineage: {to: 'https://me:hush@marquez'}\ndeployment:\n", [
     "lake.yaml:11: lineage.to: 'https://***@marquez': expected a URL without user and password; give the server's key "
     "as 'api_key'."]),
    (S, "deployment:\n", "lineage: {to: 'https://marquez/?token=hush'}\ndeployment:\n", [
     "lake.yaml:11: lineage.to: 'https://marquez/?***': expected a URL such as 'https://marquez.example.com', and "
     "nothing behind its path."]),
    (S, "deployment:\n", "lineage: {to: 'https://marquez', api_key: 'hush ${env:KEY}'}\ndeployment:\n", [
     "lake.yaml:11: lineage.api_key: (not shown): expected ${env:NAME}, ${secret:ARN[:json-key]} or ${ssm:NAME}, and "
     "nothing around it."]),
    (S, "deployment:\n", "lineage: {to: log, api_key: hush}\ndeployment:\n", [
     "lake.yaml:11: lineage.api_key: 'api_key' is only for a URL; 'to' is 'log'."]),
    (S, "deployment:\n", "lineage: {to: e.jsonl, endpoint: x}\ndeployment:\n", [
     "lake.yaml:11: lineage.endpoint: 'endpoint' is only for a URL; 'to' is 'e.jsonl'."]),
    (S, "deployment:\n", "lineage: {to: log, allow_insecure: true}\ndeployment:\n", [
     "lake.yaml:11: lineage.allow_insecure: 'allow_insecure' is only for a URL; 'to' is 'log'."]),
    (S, "deployment:\n", "lineage: {to: log, timeout_seconds: 0}\ndeployment:\n", [
     "lake.yaml:11: lineage.timeout_seconds: 0: expected at least 1."]),
    (S, "deployment:\n", "limits: {parallel_tables: 64}\ndeployment:\n", [
     "lake.yaml:11: limits.parallel_tables: 64: expected at most 32."]),
    (S, "deployment:\n", "1: x\ndeployment:\n", [
     "lake.yaml:11: 1: a key is text; put it in quotes."]),
    (S, "deployment:\n", "source: {messages: a.jsonl, catalog: {streams: [{stream: {name: a}}]}}\ndeployment:\n", [
     "lake.yaml:7: tables: expected either 'tables' or 'source', got both."]),
    (A, "format: {format_type: CSV}", "format: {format_type: ORC}", [
     "lake.yaml:7: destination.format.format_type: 'ORC' is not allowed; expected 'CSV', 'JSONL', 'Avro' or "
     "'Parquet'."]),
    (A, "format: {format_type: CSV}", "format: {}", [
     "lake.yaml:7: destination.format.format_type: is required; expected 'CSV', 'JSONL', 'Avro' or 'Parquet'."]),
    (A, "format: {format_type: CSV}", "format: {flattening: No flattening}", [
     "lake.yaml:7: destination.format.format_type: is required; expected 'CSV', 'JSONL', 'Avro' or 'Parquet'."]),
    (A, "format: {format_type: CSV}", "format: CSV", [
     "lake.yaml:7: destination.format: 'CSV': expected a mapping."]),
    (A, "format: {format_type: CSV}", "format: {format_type: CSV, flattening: yes}", [
     "lake.yaml:7: destination.format.flattening: true is not allowed; expected 'No flattening' or 'Root level "
     "flattening'."]),
    (A, "format: {format_type: CSV}", "format: {format_type: CSV, compression: {compression_type: ZIP}}", [
     "lake.yaml:7: destination.format.compression.compression_type: 'ZIP' is not allowed; expected 'No "
     "Compression' or 'GZIP'; did you mean 'GZIP'?"]),
    (A, "format: {format_type: CSV}",
     "format: {format_type: Avro, compression_codec: {codec: xz, compression_level: 12}}", [
     "lake.yaml:7: destination.format.compression_codec.compression_level: 12: expected at most 9."]),
    (A, "format: {format_type: CSV}", "format: {format_type: Parquet, block_size_mb: 0}", [
     "lake.yaml:7: destination.format.block_size_mb: 0: expected at least 1."]),
    (A, "format: {format_type: CSV}", "format: {format_type: CSV}\n  s3_bucket: x", [
     "lake.yaml:8: destination.s3_bucket: unknown key, with value 'x'; did you mean 's3_bucket_name' or "
     "'s3_bucket_path'?"]),
    (A, "format: {format_type: CSV}", "format: {format_type: CSV}\n  s3_path_format: '{date}/'", [
     "lake.yaml:8: destination.s3_path_format: '{date}/': '{date}' is no variable of a directory; known: "
     "${NAMESPACE}, ${STREAM_NAME}, ${YEAR}, ${MONTH}, ${DAY}, ${HOUR}, ${MINUTE}, ${SECOND}, ${MILLISECOND}, "
     "${EPOCH}, ${UUID}, ${SYNC_ID}."]),
    (A, "format: {format_type: CSV}", "format: {format_type: CSV}\n  file_name_pattern: '{part_numer}'", [
     "lake.yaml:8: destination.file_name_pattern: '{part_numer}': '{part_numer}' is no variable; known: {date}, "
     "{date:yyyy_MM}, {timestamp}, {timestamp:millis}, {timestamp:micros}, {part_number}, {sync_id}, "
     "{format_extension}; did you mean '{part_number}'?"]),
    (A, "  s3_bucket_region: us-east-1\n", "  bucket_region: us-east-1\n", [
     "lake.yaml:2: destination.s3_bucket_region: is required.",
     "lake.yaml:6: destination.bucket_region: unknown key, with value 'us-east-1'; did you mean 's3_bucket_region'?"]),
    (A, "format: {format_type: CSV}", "config_file: 5", [
     "lake.yaml:7: destination.config_file: a number, expected the name of a file."]),
    (A, "tables:", "source: {command: [], catalog: {streams: []}}\nx_tables:", [
     "lake.yaml:8: source.catalog.streams: an empty list: expected at least one entry.",
     "lake.yaml:9: x_tables: unknown key, with value a list; did you mean 'tables'?"]),
    (E, "uploadIntervalInSeconds: 300", "uploadIntervalInSeconds: 0", [
     "lake.yaml:6: destination.uploadIntervalInSeconds: 0: expected at least 1."]),
    (E, "uploadIntervalInSeconds: 300", "upload_interval_in_seconds: 300", [
     "lake.yaml:2: destination.uploadIntervalInSeconds: is required.",
     "lake.yaml:6: destination.upload_interval_in_seconds: unknown key, with value 300; did you mean "
     "'uploadIntervalInSeconds'?"]),
    (E, "bucket: acme-lake", "s3_bucket_name: acme-lake", [
     "lake.yaml:2: destination.bucket: is required.",
     "lake.yaml:4: destination.s3_bucket_name: unknown key, with value 'acme-lake'; did you mean 'bucket'?"]),
    (E, "region: us-east-1", "compressionType: lzo", [
     "lake.yaml:5: destination.compressionType: 'lzo' is not allowed; expected 'snappy', 'gzip', 'lz4' or "
     "'zstd'; did you mean 'lz4'?"]),
    (E, "region: us-east-1", "advanced: {endpoint: minio}", [
     "lake.yaml:5: destination.advanced.endpoint: 'minio': expected a URL such as 'https://s3.example.com'."]),
    (E, "region: us-east-1", "awsAccessKeyId: abc", [
     "lake.yaml:5: destination.awsAccessKeyId: 'awsAccessKeyId' and 'awsSecretAccessKey' are given both or not at "
     "all."]),
    (E, "pathPrefix: /changes", "pathPrefix: /", [
     "lake.yaml:11: tables.0.resource.pathPrefix: '/': expected a path inside the bucket, such as '/my-prefix'."]),
    (E, "    resource: {pathPrefix: /changes}\n", "", [
     "lake.yaml:8: tables.0.resource: is required."]),
    (E, "    primary_key: [id]\n", "", [
     "lake.yaml:8: tables.0: the collection has no key: give 'collection.key', or 'primary_key'."]),
    (E, "    primary_key: [id]\n", "    collection: {schema: {type: objekt}, key: [/id]}\n", [
     "lake.yaml:9: tables.0.collection: the collection's schema has type 'objekt' at the root; expected array, "
     "boolean, integer, null, number, object, string."]),
    (E, "pipeline: changes", "pipeline: changes\ninterval_seconds: 60", [
     "lake.yaml:2: interval_seconds: 'interval_seconds' is called 'uploadIntervalInSeconds' here, under "
     "'destination'."]),
    # numbers in quotes are text, here as in the vendors' documents, which call these keys integers
    (S, "s3_path_prefix: data", "upload_parallelism: '5'", [
     "lake.yaml:6: destination.upload_parallelism: '5': expected a whole number; write 5 without quotes."]),
    (S, "s3_path_prefix: data", "upload_parallelism: true", [
     "lake.yaml:6: destination.upload_parallelism: true: expected a whole number."]),
    (S, "s3_path_prefix: data", "role_wait_seconds: '0.5'", [
     "lake.yaml:6: destination.role_wait_seconds: '0.5': expected a number; write 0.5 without quotes."]),
    (S, "  stages: {dev: {}}", "  spark: {driver: {cores: '4'}}", [
     "lake.yaml:12: deployment.spark.driver.cores: '4' is not allowed; expected 1, 2, 4, 8 or 16; write 4 without "
     "quotes."]),
    (A, "format: {format_type: CSV}", "format: {format_type: Parquet, block_size_mb: '64'}", [
     "lake.yaml:7: destination.format.block_size_mb: '64': expected a whole number; write 64 without quotes."]),
    (E, "uploadIntervalInSeconds: 300", "uploadIntervalInSeconds: '300'", [
     "lake.yaml:6: destination.uploadIntervalInSeconds: '300': expected a whole number; write 300 without quotes."]),
    # found when the file is translated, its keys being right one by one
    (S, "s3_path_prefix: data", "custom_s3_endpoint: http://store.example.com", [
     "TLS_REQUIRED: lake.yaml:6: destination.custom_s3_endpoint: 'http://store.example.com' has no TLS and is not on "
     "this machine. Use https://, or set allow_insecure: true."]),
    (S, "    schema: public\n", "    mode: overwrite\n", [
     "lake.yaml:9: tables.0.mode: table 'flights' has mode 'overwrite'; this destination only appends. Leave mode "
     "out."]),
    (S, "    schema: public\n", "    partition_by: [day(at)]\n", [
     "lake.yaml:9: tables.0.partition_by: table 'flights' has partition_by, which only Iceberg tables have. Set "
     "table_format: ICEBERG, or leave partition_by out; Parquet tables have partition_strategy."]),
    (S, "    read: {format: csv, path: flights.csv}\n",
     "    read: {format: csv, path: a.csv}\n  - {table: flights, schema: public, read: {format: csv, path: b.csv}}\n", [
     "NAME_COLLISION: lake.yaml:11: tables.1: table 'flights' of schema 'public' is given twice. Give each table once, "
     "or give the two different names."]),
    (S, "    schema: public\n", "    contract: {columns: freeze}\n", [
     "lake.yaml:9: tables.0.contract.columns: table 'flights' has contract.columns: freeze, which cannot be kept where "
     "no catalog has the table's columns. Leave it out; columns that the source adds are then added, and types that "
     "grow without loss widen."]),
    (S, "pipeline: flights\n", "pipeline: flights\ncontract: {types: freeze}\n", [
     "lake.yaml:2: contract.types: table 'flights' has contract.types: freeze, which cannot be kept where no catalog "
     "has the table's columns. Leave it out; columns that the source adds are then added, and types that grow "
     "without loss widen."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{not_null: a, on_violation: ignore}]\n", [
     "lake.yaml:10: tables.0.expect.0.on_violation: 'ignore' is not allowed; expected 'fail', 'warn' or "
     "'quarantine'."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{not_null: a, on_violation: quarantine}]\n", [
     "lake.yaml:10: tables.0.expect.0: table 'flights' keeps rows out by 'not_null.a', and has no quarantine for them. "
     "Set on_bad_row: quarantine; its at_most bounds the share of rows that are kept out."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{unique: a, on_violation: quarantine}]\n", [
     "lake.yaml:10: tables.0.expect.0: 'on_violation: quarantine' is for 'not_null', 'range', 'accepted_values', "
     "'sql', which tell one row apart from another."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{not_null: a, name: on_bad_row}]\n", [
     "lake.yaml:10: tables.0.expect.0.name: 'name' 'on_bad_row' is that of rows which cannot be loaded."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{not_nul: a}]\n", [
     "lake.yaml:10: tables.0.expect.0.not_nul: unknown key, with value 'a'; did you mean 'not_null'?"]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{}]\n", [
     "lake.yaml:10: tables.0.expect.0: expected one of 'rows', 'not_null', 'null_share', 'range', 'fresh', "
     "'accepted_values', 'unique', 'sql'."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{rows: {at_least: 1}, not_null: a}]\n", [
     "lake.yaml:10: tables.0.expect.0.rows: expected one of 'rows', 'not_null', 'null_share', 'range', 'fresh', "
     "'accepted_values', 'unique', 'sql', got 'rows' and 'not_null'."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{rows: {of_last_loads: 7}}]\n", [
     "lake.yaml:10: tables.0.expect.0.rows.of_last_loads: 'of_last_loads' and 'between' belong together."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{rows: {at_least: 5, at_most: 2}}]\n", [
     "lake.yaml:10: tables.0.expect.0.rows.at_least: expected 'at_least' and 'at_most' in order, the smaller one "
     "first."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{null_share: {column: a, at_most: 5}}]\n", [
     "lake.yaml:10: tables.0.expect.0.null_share.at_most: 5: expected a share from 0 to 1, or a percentage "
     "such as 5%."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{range: {column: a}}]\n", [
     "lake.yaml:10: tables.0.expect.0.range: expected 'at_least' or 'at_most', or both."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{fresh: {column: a, within: 26h}}]\n", [
     "lake.yaml:10: tables.0.expect.0.fresh.within: '26h': expected a time such as '26 hours'."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{not_null: a, name: a b}]\n", [
     "lake.yaml:10: tables.0.expect.0.name: 'a b': expected letters, digits, '.', '_' and '-', at most 100, a letter, "
     "digit or '_' first."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{not_null: a}, {not_null: [b, a]}]\n", [
     "lake.yaml:10: tables.0.expect.1: table 'flights' has two expectations named 'not_null.a'. Give one of them a "
     "'name' of its own."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{sql: a > b}]\n", [
     "lake.yaml:10: tables.0.expect.0.sql: 'sql' needs 'name' beside it, which messages call it."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{accepted_values: {column: a, values: []}}]\n", [
     "lake.yaml:10: tables.0.expect.0.accepted_values.values: an empty list: expected at least one entry."]),
    (S, "    schema: public\n", "    schema: public\n    expect: [{accepted_values: {column: a, values: [null]}}]\n", [
     "lake.yaml:10: tables.0.expect.0.accepted_values.values.0: nothing: expected true or false, a number or text."]),
    (S, "pipeline: flights\n", "pipeline: flights\nexpect: [{not_null: a, tables: [flight]}]\n", [
     "lake.yaml:2: expect.0.tables: 'flight' is no table or stream of this file. It has 'flights'."]),
    (S, "    read: {format: csv, path: flights.csv}\n",
     "    on_bad_row: quarantine\n    read: {format: xml, path: f.xml}\n", [
     "lake.yaml:10: tables.0.on_bad_row: table 'flights' has on_bad_row: quarantine, which cannot be kept for xml "
     "files. Leave it out; a row that cannot be read then fails the load, or is treated as the destination's guide "
     "says."]),
    (S, "s3_path_prefix: data\ntables:\n  - table: flights\n    schema: public\n",
     "update_aws_glue_catalog: true\n  glue_database_prefix: ''\ntables:\n  - table: flights\n", [
     "lake.yaml:9: tables.0: table 'flights' has no schema, and Glue needs a database. Give glue_database_prefix, "
     "destination_prefix, or the table's schema."]),
    (A, "  - table: users\n", "  - table: users\n    deleted: gone\n", [
     "lake.yaml:10: tables.0.deleted: table 'users' has 'deleted', and this destination has no column for it. Leave it "
     "out; the source's own columns are written as they are."]),
    (A, "  - table: users\n", "  - table: users\n    mode: overwrite\n    cursor: at\n", [
     "lake.yaml:11: tables.0.cursor: table 'users' has a cursor and 'mode: overwrite': the rows below the cursor would "
     "be lost. Leave the cursor out, or append."]),
    (A, "format: {format_type: CSV}", "format: {format_type: CSV}\n  s3_endpoint: http://store.example.com", [
     "TLS_REQUIRED: lake.yaml:8: destination.s3_endpoint: 'http://store.example.com' has no TLS and is not on this "
     "machine. Use https://, or set allow_insecure: true."]),
    (A, "format: {format_type: CSV}", "format: {format_type: CSV}\n  s3_path_format: x/\n  file_name_pattern: y", [
     "lake.yaml:9: destination.file_name_pattern: 'y' gives every file of 'users' one name. Add {part_number} to it."]),
    (A, "tables:\n", "tables:\n  - {table: users, read: {format: csv, path: b.csv}}\n", [
     "NAME_COLLISION: lake.yaml:10: tables.1: streams 'users' and 'users' would lie at the same keys. Put ${NAMESPACE} "
     "and ${STREAM_NAME} into s3_path_format, or give the streams different names."]),
    (E, "    primary_key: [id]\n", "    primary_key: [id]\n    mode: overwrite\n", [
     "lake.yaml:10: tables.0.mode: binding 'acme/changes' has mode 'overwrite'; this destination only appends delta "
     "updates. Leave mode out."]),
    (E, "    primary_key: [id]\n", "    primary_key: [id]\n    deleted: gone\n", [
     "lake.yaml:10: tables.0.deleted: binding 'acme/changes' has 'deleted'; this destination writes documents as they "
     "are. Leave deleted out."]),
    (E, "pathPrefix: /changes", "pathPrefix: /_lakewriter/x", [
     "lake.yaml:11: tables.0.resource.pathPrefix: '/_lakewriter/x': has the segment '_lakewriter', and what begins "
     "with '_lakewriter' is for control objects; expected text such as '/my-prefix'."]),
    (E, "tables:\n",
     "tables:\n  - {source: b, primary_key: [id], read: {format: json, path: b}, resource: {pathPrefix: changes}}\n", [
     "NAME_COLLISION: lake.yaml:12: tables.1.resource.pathPrefix: two bindings have the pathPrefix 'changes'. Give "
     "each binding a path of its own."]),
    (E, "tables:\n", "tables:\n  - {table: more, read: {format: json, path: b}}\n", [
     "lake.yaml:8: tables.0: table 'more' has no binding's keys. Give it 'source' and 'resource.pathPrefix'."]),
    (E, "region: us-east-1", "advanced: {endpoint: 'http://store.example.com'}", [
     "TLS_REQUIRED: lake.yaml:5: destination.advanced.endpoint: 'http://store.example.com' has no TLS and is not on "
     "this machine. Use https://, or set allow_insecure: true."]),
    (E, "    primary_key: [id]\n", "    collection: {schema: {$defs: x, $ref: lake.yaml}, key: [/id]}\n", [
     "lake.yaml:9: tables.0.collection.schema: the collection's schema has no mapping as '$defs'; expected one."]),
]  # fmt: skip
