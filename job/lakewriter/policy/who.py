"""Name the kinds of role that a document is for; standard library only, since the command line offers them."""

from enum import StrEnum


class Who(StrEnum):
    """The kind of role that a document is for."""

    JOB = "job"
    """The role that EMR Serverless runs the job with."""
    LOADER = "loader"
    """A role that a job assumes at the destination: ``iam_role_arn``, and ``trust`` entries with ``access: load``."""
    VENDOR = "vendor"
    """A party that writes its own files beside the job's."""
    CATALOG = "catalog"
    """Snowflake Open Catalog."""
    READER = "reader"
    """Snowflake's compute, and entries of ``trust`` with ``access: read``."""
    OPTIMIZER = "optimizer"
    """Glue's optimizers of Iceberg tables, with ``maintenance.optimizer_role``."""
    OPERATOR = "operator"
    """A person on call, who follows the runbook. With ``deployment.operators`` a stack makes this role."""
    DEPLOYER = "deployer"
    """A person who deploys, and CloudFormation for them. No stack makes this role."""
