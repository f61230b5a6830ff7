"""Deployments that cannot work with the messages about them, and some that can though they look alike."""

from typing import Any

GOOD: dict[str, Any] = {
    "pipeline": "sales",
    "destination": {
        "type": "supaflow-s3-data-lake",
        "s3_bucket_name": "acme-lake",
        "bucket_region": "eu-central-1",
        "s3_path_prefix": "data",
        "update_aws_glue_catalog": True,
    },
    "tables": [
        {"table": "orders", "schema": "shop", "read": {"format": "parquet", "path": "s3://acme-landing/orders"}}
    ],
}
READ_ORDERS = {"table": "orders", "schema": "shop"}
NESTED = {"s3_path_prefix": "data/test", "destination_prefix": "t"}


def tables(read: dict[str, Any]) -> dict[str, Any]:
    return {"tables": [{**READ_ORDERS, "read": read}]}


TABLE_BUCKET = "arn:aws:s3tables:eu-central-1:123456789012:bucket/acme-tables"
IN_TABLE_BUCKET = dict.fromkeys(GOOD["destination"]) | {
    "type": "lakewriter-s3", "location": "s3://acme-lake/data", "region": "eu-central-1", "catalog": "s3_tables",
    "table_bucket_arn": TABLE_BUCKET,
}  # fmt: skip
NETWORK = {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}
ORDERS_TABLE = {"url": "jdbc:postgresql://db/shop", "dbtable": "orders"}
NO_DRIVER = (
    "tables: table 'shop.orders' reads a database by JDBC, and no driver goes with the job; expected its jar. Give "
    "deployment.jars the driver's jar, as s3://... or as a file beside lake.yaml."
)

# What is laid over GOOD, each key whole but for destination's and deployment's own; and the messages in full.
BAD: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "a bucket name with dots and Snowflake",
        {"destination": {"s3_bucket_name": "acme.lake"}, "deployment": {"snowflake": {}}},
        [
            "the destination's bucket 'acme.lake' has dots in its name, and a Snowflake external volume cannot use it; "
            "expected a name of letters, digits and '-'. Take another bucket, or leave out deployment.snowflake."
        ],
    ),
    (
        "an external id from the environment, out of its alphabet",
        {"deployment": {"trust": [{"vendor": "supaflow", "external_id": "${env:BAD_EXTERNAL_ID}"}]}},
        [
            "deployment.trust.0.external_id: ${env:BAD_EXTERNAL_ID} holds 'acme lake'; expected 2 to 1224 letters, "
            "digits and +=,.@:/-_ without spaces around them. Take the external id as the vendor shows it."
        ],
    ),
    (
        "an external id from a variable that is not set",
        {"deployment": {"trust": [{"vendor": "supaflow", "external_id": "${env:NO_EXTERNAL_ID}"}]}},
        [
            "deployment.trust.0.external_id: ${env:NO_EXTERNAL_ID}, an external id, is not set in this environment. "
            "Set NO_EXTERNAL_ID to what the vendor gave you, or give the external id as ${ssm:NAME}."
        ],
    ),
    (
        "an earlier external id from a variable that is not set",
        {
            "deployment": {
                "trust": [
                    {"vendor": "supaflow", "external_id": "b2", "earlier_external_ids": ["a1", "${env:NO_EXTERNAL_ID}"]}
                ]
            }
        },
        [
            "deployment.trust.0.earlier_external_ids.1: ${env:NO_EXTERNAL_ID}, an external id, is not set in this "
            "environment. Set NO_EXTERNAL_ID to what the vendor gave you, or give the external id as ${ssm:NAME}."
        ],
    ),
    (
        "a party among the job's own files",
        {"deployment": {"trust": [{"vendor": "supaflow", "external_id": "acme", "tables": ["supaflow_shop.*"]}]}},
        [
            "deployment.trust.0.tables: table 'supaflow_shop.orders' of this file lies there, at "
            "'data/supaflow_shop/orders/', and no party writes among the job's own files. Give tables of the party's "
            "own, or access: read."
        ],
    ),
    (
        "a source on this machine",
        tables({"format": "csv", "path": "/landing/orders.csv"}),
        [
            "table 'supaflow_shop.orders': read.path: '/landing/orders.csv' is on this machine; expected s3://..., "
            "or give source_root."
        ],
    ),
    (
        "a variable of this machine where the job would read it",
        {"destination": {"iam_role_arn": "arn:aws:iam::123456789012:role/Lake", "external_id": "${env:LAKE_ID}"}},
        [
            "destination.external_id: '${env:LAKE_ID}' names a variable of this machine; "
            "expected ${secret:ARN} or ${ssm:NAME}, which the job's role reads."
        ],
    ),
    (
        "a secret written out",
        {"destination": {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "hunter2"}},
        ["secret_access_key is written out; expected ${secret:ARN} or ${ssm:NAME}, which the job's role reads."],
    ),
    (
        "a custom endpoint without a network",
        {"destination": {"custom_s3_endpoint": "https://s3.example.com"}},
        [
            "the destination's custom endpoint 'https://s3.example.com' is out of reach without a VPC; expected none, "
            "or a network. Give deployment.network the subnets and security groups of a VPC with a way there."
        ],
    ),
    (
        "JDBC without a network, in a view",
        tables({"sql": "SELECT * FROM o", "views": {"o": {"format": "jdbc", "options": ORDERS_TABLE}}}),
        [
            "tables: table 'shop.orders' reads format 'jdbc', a source out of reach without a VPC; expected files in "
            "S3, or a network. Give deployment.network the subnets and security groups of a VPC with a way there, or "
            "land the data in S3 first.",
            NO_DRIVER,
        ],
    ),
    (
        "JDBC without a driver",
        {
            **tables({"format": "JDBC", "options": ORDERS_TABLE}),
            "deployment": {"network": {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}},
        },
        [NO_DRIVER],
    ),
    (
        "a jar that is not there",
        {"deployment": {"jars": ["/nowhere/postgresql.jar"]}},
        [
            "deployment.jars.0: there is no file '/nowhere/postgresql.jar'; expected one beside lake.yaml, or s3://..."
        ],
    ),
    (
        "a parameter without a network: EMR Serverless reaches Secrets Manager, and not Parameter Store",
        tables({"format": "csv", "path": "s3://a/b", "options": {"fs.s3a.proxy.password": "${ssm:/lake/key}"}}),
        [
            "${ssm:/lake/key} is in Parameter Store, which is out of reach without a VPC; expected ${secret:ARN}, in "
            "Secrets Manager, or a network. Give deployment.network the subnets and security groups of a VPC with a "
            "way there."
        ],
    ),
    (
        "a secret of another region without a network",
        tables({"format": "csv", "path": "s3://a/b", "options": {
            "fs.s3a.proxy.password": "${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:key-AbCdEf}"
        }}),
        [
            "${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:key-AbCdEf} is in us-east-1, which is out "
            "of reach without a VPC; expected a secret in the bucket's region, or a network. Give deployment.network "
            "the subnets and security groups of a VPC with a way there."
        ],
    ),
    (
        "metrics of the job's own without a network",
        {"put_metrics": True},
        [
            "put_metrics: CloudWatch's metrics are out of reach without a VPC; expected put_metrics: false, or a "
            "network. Give deployment.network the subnets and security groups of a VPC with a way there."
        ],
    ),
    (
        "a lineage server without a network",
        {"lineage": {"to": "https://marquez.example.com"}},
        [
            "lineage.to: the server 'https://marquez.example.com' is out of reach without a VPC; expected lineage.to: "
            "log, or a network. Give deployment.network the subnets and security groups of a VPC with a way there."
        ],
    ),
    (
        "lineage in a file",
        {"lineage": {"to": "events.jsonl"}},
        [
            "lineage.to: 'events.jsonl' would be a file of a machine that is gone after the load; expected 'log' or a "
            "URL."
        ],
    ),
    (
        "another store without a network",
        tables({"format": "parquet", "path": "abfss://landing@acme.dfs.core.windows.net/orders"}),
        [
            "tables: table 'shop.orders' reads 'abfss://landing@acme.dfs.core.windows.net/orders', out of reach "
            "without a VPC; expected s3://, or a network. Give deployment.network the subnets and security groups of a "
            "VPC with a way there."
        ],
    ),
    (
        "a schedule faster than the timeout allows",
        {"deployment": {"schedule": {"cron": "0 * * * ? *", "timezone": "Europe/Berlin"}}},
        [
            "deployment.schedule: cron(0 * * * ? *) starts loads 1 h apart, and an attempt may take 3 h; expected "
            "starts at least that far apart, since loads do not overlap. Lower deployment.spark.timeout_minutes, or "
            "start loads less often.",
        ],
    ),
    (
        "a schedule whose flexible window brings starts too close",
        {"deployment": {"schedule": {"rate": "1 hour", "flexible_minutes": 15}, "spark": {"timeout_minutes": 50}}},
        [
            "deployment.schedule: rate(1 hour) starts loads 1 h apart, less flexible_minutes, 15 min, and an attempt "
            "may take 50 min; expected starts at least that far apart, since loads do not overlap. Lower "
            "deployment.spark.timeout_minutes, or start loads less often."
        ],
    ),
    (
        "an alarm that every weekend would set off",
        {"deployment": {"schedule": {"cron": "0 6 ? * MON-FRI *"}, "alarms": {"no_success_hours": 24}}},
        [
            "deployment.alarms.no_success_hours: 24 hours may pass between two starts, which "
            "cron(0 6 ? * MON-FRI *) has up to 72 h apart; expected more than that. Raise it, or leave it out."
        ],
    ),
    (
        "an application of another architecture than the bundle",
        {"deployment": {"spark": {"architecture": "ARM64"}}},
        [
            "deployment.spark.architecture is 'ARM64', and the bundle has dependencies for x86_64. "
            "Run scripts/bundle --architecture aarch64."
        ],
    ),
    (
        "a release without the Spark that the job needs",
        {"deployment": {"spark": {"release": "emr-7.9.0"}}},
        [
            "deployment.spark.release 'emr-7.9.0' has Spark 3.5 and Python 3.9; "
            "the job needs Spark 4.1 and Python 3.11: emr-spark-8.1.*."
        ],
    ),
    (
        "workers of sizes that do not exist",
        {"deployment": {"spark": {"driver": {"cores": 2, "memory": "16G"}, "executor": {"disk": "10G"}}}},
        [
            "deployment.spark.driver.memory: '16G' with Spark's overhead of a tenth do not fit a worker of 2 cores, "
            "which has at most 16 GB; expected at most '14G'. Lower it, or give the worker more cores.",
            "deployment.spark.executor.disk: expected '20G' to '200G', as EMR Serverless offers, got '10G'.",
        ],
    ),
    (
        "executors that their tasks do not fit, and sizes given to Spark behind the stack's back",
        {
            "limits": {"row_group_mb": 2000},
            "deployment": {
                "spark": {
                    "executor": {"cores": 2, "memory": "12G"},
                    "conf": {"spark.executor.memoryOverhead": "1G"},
                }
            },
        },
        [
            "deployment.spark.executor.memory: '12G' with Spark's overhead of a tenth, and 5.7 GB for 2 tasks beside "
            "it, do not fit a worker of 2 cores, which has at most 16 GB; expected at most '9G'. Lower it, lower "
            "limits.row_group_mb, or give the worker more cores.",
            "deployment.spark.conf: 'spark.executor.memoryOverhead' is given; expected the size of workers under "
            "deployment.spark.executor.memory, from which the memory of their tasks follows.",
        ],
    ),
    (
        "more executors than the account may run",
        {"deployment": {"spark": {"max_executors": 10}}},
        [
            "deployment.spark.max_executors: 10 executors of 4 vCPUs and a driver of 2 make 42 vCPUs; expected at most "
            "account_vcpu_quota, 16. Lower it to 3, or have EMR Serverless's quota 'Max concurrent vCPUs per account' "
            "raised and account_vcpu_quota say so."
        ],
    ),
    (
        "one executor too large for the account",
        {"deployment": {"spark": {"max_executors": 1}, "account_vcpu_quota": 4}},
        [
            "deployment.spark.max_executors: 1 executor of 4 vCPUs and a driver of 2 make 6 vCPUs; expected at most "
            "account_vcpu_quota, 4. Take smaller workers, or have EMR Serverless's quota 'Max concurrent vCPUs per "
            "account' raised and account_vcpu_quota say so."
        ],
    ),
    (
        "a stream without room for its canary",
        {"deployment": {"account_vcpu_quota": 14, "spark": {"mode": "STREAMING"}}, "checkpoint": "s3://acme-state/sales"},
        [
            "deployment.spark.max_executors: 3 executors of 4 vCPUs and a driver of 2, and the canary's 2 beside them, "
            "make 16 vCPUs; expected at most account_vcpu_quota, 14. Lower it to 2, or have EMR Serverless's quota "
            "'Max concurrent vCPUs per account' raised and account_vcpu_quota say so."
        ],
    ),
    (
        "an abort rule as long as the longest load",
        {"deployment": {"abort_incomplete_uploads_days": 1, "spark": {"attempts": 6}}},
        [
            "deployment.abort_incomplete_uploads_days: 1 is too few: a load may take 24 h 30 min with all its 6 "
            "attempts, and until it commits, its files are incomplete uploads; expected 2 or more. Raise it, or lower "
            "timeout_minutes, queue_timeout_minutes or attempts of spark."
        ],
    ),
    (
        "a table bucket of no account, which EMR Serverless does not reach",
        {"destination": IN_TABLE_BUCKET, "deployment": {}},
        [
            "deployment.account is not given; expected '123456789012', where destination.table_bucket_arn has the "
            "stack make the table bucket, or another one with existing.table_bucket: true.",
            "the Iceberg catalog 'https://s3tables.eu-central-1.amazonaws.com/iceberg' is out of reach without a VPC; "
            "expected catalog: iceberg, or a network. Give deployment.network the subnets and security groups of a VPC "
            "with a way there.",
        ],
    ),
    (
        "an existing table bucket of tables in files",
        {"deployment": {"existing": {"table_bucket": True}}},
        [
            "deployment.existing.table_bucket: the tables lie in no table bucket; expected catalog: s3_tables. Leave "
            "it out."
        ],
    ),
    (
        "two stages in one table bucket",
        {
            "destination": IN_TABLE_BUCKET,
            "deployment": {
                "account": "123456789012",
                "network": NETWORK,
                "stages": {"prod": {}, "test": {"destination": {"location": "s3://acme-lake-test/data"}}},
            },
        },
        [
            f"deployment.stages: stages 'prod' and 'test' both make the table bucket '{TABLE_BUCKET}'; expected at "
            "most one that does. Set existing.table_bucket in deployment.stages.test, or give it another "
            "table_bucket_arn.",
            "deployment.stages: stages 'prod' and 'test' both write the namespace 'shop'; expected namespaces of their "
            "own. Give deployment.stages.test another database.",
        ],
    ),
    (
        "two stages on one prefix and database",
        {"deployment": {"stages": {"prod": {}, "test": {}}}},
        [
            "deployment.stages: stages 'prod' and 'test' write to s3://acme-lake/data and s3://acme-lake/data; "
            "expected prefixes of which none holds the other. Give deployment.stages.test another s3_path_prefix, or "
            "another bucket.",
            "deployment.stages: stages 'prod' and 'test' both write the Glue database 'supaflow_shop'; expected "
            "databases of their own. Give deployment.stages.test another destination_prefix.",
        ],
    ),
    (
        "a stage's databases within reach of another's vendor",
        {"deployment": {
            "trust": [{"vendor": "supaflow", "external_id": "acme"}],
            "stages": {"prod": {}, "test": {
                "destination": {"s3_bucket_name": "acme-lake-test", "destination_prefix": "test"},
                "deployment": {"trust": []},
            }},
        }},
        [
            "deployment.stages: 'prod' lets parties from outside write databases named supaflow_*, and the database "
            "'supaflow_test_shop' of 'test' is one; expected stages out of each other's reach. Give "
            "deployment.stages.test a glue_database_prefix that makes other names, or deployment.stages.prod other "
            "parties."
        ],
    ),
    (
        "databases within reach by a prefix that ends with an underscore",
        {"destination": {"glue_database_prefix": "acme_"}, "deployment": {
            "trust": [{"vendor": "supaflow", "external_id": "acme"}],
            "stages": {"prod": {}, "test": {
                "destination": {"s3_bucket_name": "acme-lake-test", "destination_prefix": "test"},
                "deployment": {"trust": []},
            }},
        }},
        [
            "deployment.stages: 'prod' lets parties from outside write databases named acme_*, and the database "
            "'acme_test_shop' of 'test' is one; expected stages out of each other's reach. Give "
            "deployment.stages.test a glue_database_prefix that makes other names, or deployment.stages.prod other "
            "parties."
        ],
    ),
    (
        "a stage's prefix inside another's",
        {"deployment": {"stages": {"prod": {}, "test": {"destination": NESTED}}}},
        [
            "deployment.stages: stages 'prod' and 'test' write to s3://acme-lake/data and s3://acme-lake/data/test; "
            "expected prefixes of which none holds the other. Give deployment.stages.test another s3_path_prefix, or "
            "another bucket."
        ],
    ),
    (
        "two stages that make one bucket",
        {"deployment": {"stages": {"prod": {}, "test": {"destination": NESTED | {"s3_path_prefix": "data-test"}}}}},
        [
            "deployment.stages: stages 'prod' and 'test' both make the bucket 'acme-lake'; expected at most one that "
            "does. Set existing.bucket in deployment.stages.test, or give it another bucket."
        ],
    ),
]  # fmt: skip

GOOD_TOO: list[tuple[str, dict[str, Any]]] = [
    ("as it is", {}),
    ("JDBC with a network", {
        **tables({"format": "jdbc", "options": ORDERS_TABLE}),
        "deployment": {
            "network": {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]},
            "jars": ["s3://acme-jars/postgresql-42.7.jar"],
        },
    }),
    ("JDBC with packages of Spark's", {
        **tables({"format": "jdbc", "options": ORDERS_TABLE}),
        "deployment": {
            "network": {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]},
            "spark": {"conf": {"spark.jars.packages": "org.postgresql:postgresql:42.7.4"}},
        },
    }),
    ("a secret of the region without a network", tables({"format": "csv", "path": "s3://a/b", "options": {
        "fs.s3a.proxy.password": "${secret:arn:aws:secretsmanager:eu-central-1:123456789012:secret:key-AbCdEf}"
    }})),
    ("a parameter with a network", {
        **tables({"format": "csv", "path": "s3://a/b", "options": {"fs.s3a.proxy.password": "${ssm:/lake/key}"}}),
        "deployment": {"network": {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}},
    }),
    ("dots without Snowflake", {"destination": {"s3_bucket_name": "acme.lake"}}),
    ("a parameter for an external id", {
        "deployment": {"trust": [{"vendor": "supaflow", "external_id": "${ssm:/lake/external-id}"}]}
    }),
    ("starts as far apart as the timeout", {"deployment": {"schedule": {"rate": "3 hours"}}}),
    ("starts of what goes on until it is stopped", {
        "checkpoint": "s3://acme-lake/data/_checkpoints",
        "deployment": {"schedule": {"rate": "15 minutes"}, "spark": {"mode": "STREAMING"}},
    }),
    ("a single start", {"deployment": {"schedule": {"cron": "0 0 1 1 ? 2030"}}}),
    ("a short abort rule on a bucket that is there", {
        "deployment": {"abort_incomplete_uploads_days": 1, "spark": {"attempts": 10}, "existing": {"bucket": True}}
    }),
    ("stages on buckets of their own", {
        "deployment": {"stages": {"prod": {}, "test": {
            "destination": {"s3_bucket_name": "acme-lake-test", "destination_prefix": "test"}
        }}}
    }),
    ("stages of one name in accounts of their own", {
        "deployment": {"stages": {
            "prod": {"deployment": {"account": "111111111111"}},
            "test": {"deployment": {"account": "222222222222"}, "destination": {"s3_bucket_name": "acme-lake-test"}},
        }}
    }),
]  # fmt: skip
