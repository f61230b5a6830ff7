"""Give the reason for each statement of a policy, and for its wildcard, by the statement's id.

The reasons are apart from the statements because a deployed template has no place for them: the review and cdk-nag have
a template's JSON alone, in which the id is all that leads back. One id also stands in statements of several modules,
in the job's ``policy`` and here, and the job's bundle needs none of these texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lakewriter.dialects.registry import VENDOR_STATEMENTS


@dataclass(frozen=True)
class Reason:
    """The reason for a ``statement``, for the reviewer, and for its ``wildcard``, for cdk-nag; blank without one."""

    statement: str
    wildcard: str = ""


REASONS: Final[Mapping[str, Reason]] = {
    "AdministerByDeployment": Reason(
        "CloudFormation administers the key by its own policy: no permission of a role could tell it apart from others."
    ),
    "EncryptWithTheKey": Reason("No object is under another key than the bucket's; earlier ones may still be named."),
    "NameTheKey": Reason("No object is under S3's own keys, or AWS's key for S3."),
    "NoKeyOfTheCaller": Reason("No object is under a key that only its writer has."),
    "UseEarlierKeysThroughS3": Reason("Objects of before a change of the key are under these; nothing new is."),
    "AlarmsOfThisAccount": Reason("Only alarms of this account may publish to the topic."),
    "RulesOfEventBridge": Reason(
        "EventBridge names each failed load in a message to this topic. Its pages disagree on conditions in a topic's "
        "policy, so there is none: a stranger's rule could send mail, and read nothing."
    ),
    "FindTableBucket": Reason(
        "Every client of a table bucket looks it up first; a load makes namespaces that are missing."
    ),
    "UseNamespaces": Reason("To look up the tables' namespaces, and a load's tables where they are missing."),
    "FindTablesInBucket": Reason(
        "To find out whether a table is there, and which metadata it has.",
        "S3 Tables chooses the ids of tables; the condition leaves the file's namespaces.",
    ),
    "ReadTablesInBucket": Reason(
        "To read the tables' files.",
        "S3 Tables chooses the ids of tables; the condition names the tables, or their namespaces.",
    ),
    "WriteTablesInBucket": Reason(
        "To write the tables' files, to commit them, and to say how long the service keeps snapshots.",
        "S3 Tables chooses the ids of tables; the condition names the tables, or their namespaces.",
    ),
    "ReadFederatedTables": Reason(
        "Athena and Redshift look tables of S3 Tables up in Glue's catalog of them.",
        "Tables are read as they appear; no other namespace of the table bucket matches.",
    ),
    "KeepTables": Reason(
        "S3 Tables compacts the tables, expires their snapshots and takes unreferenced files away; it makes no table "
        "under a key that it may not use."
    ),
    "StartAndFindLoads": Reason(
        "An operator starts loads of this pipeline, and what follows deployments, and looks for them."
    ),
    "FollowAndStopLoads": Reason(
        "An operator follows loads of this pipeline, and stops them.",
        "The executions of the stage's own state machines; each has its name only once it is started.",
    ),
    "ReadOutputs": Reason(
        "The stacks' outputs name what the runbook's commands are about.",
        "CloudFormation adds an id to a stack's ARN; other stacks have other names.",
    ),
    "ReadLogs": Reason(
        "What the job printed, and each step of its loads.",
        "CloudFormation ends the names of log groups; these are the stack's by their beginnings.",
    ),
    "ReadDeadLetters": Reason(
        "Starts that were not delivered, and their deletion once somebody has looked into them.",
        "CloudFormation ends the queue's name; it is the stack's by its beginning.",
    ),
    "ReadSchedules": Reason(
        "Whether the schedule is on.",
        "CloudFormation ends the schedule's name; it is the stack's by its beginning.",
    ),
    "FollowJobRuns": Reason(
        "To follow an attempt, and to cancel one that no load waits for.",
        "Ids of applications and job runs are AWS's to choose; the condition on the tag leaves those of this stack.",
    ),
    "FindCallers": Reason(
        "Who stopped or cancelled a load.",
        "cloudtrail:LookupEvents has no resources.",
    ),
    "ReadQuota": Reason(
        "The account's quota of vCPUs, where a load waits for capacity.",
        "servicequotas:GetServiceQuota has no resources.",
    ),
    "UseKeyThroughSqs": Reason("Starts that were not delivered are under this key; only SQS may use it for them."),
    "WithdrawObjects": Reason(
        "What an abandoned load has left is withdrawn.",
        "Object keys are made at run time; nothing outside the pipeline's prefix matches.",
    ),
    "WriteRecords": Reason(
        "To abandon, reset or rebuild, which change the records of loads, and to restore their versions.",
        "Records have names of their own; they are the pipeline's by their folder.",
    ),
    "ListVersions": Reason("To find the version of a record that is to be restored."),
    "AskLakeFormation": Reason(
        "Tables under Lake Formation; its grants say which.",
        "lakeformation:GetDataAccess has no resources; grants in Lake Formation say on what.",
    ),
    "DecryptArtifacts": Reason("The job's artifacts are under this key; only S3 may use it for them."),
    "DecryptOutcomes": Reason("Outcome files are encrypted with the bucket's key."),
    "DeleteEarlierApplications": Reason("After a deployment, applications that no load uses any more are deleted."),
    "DeliverLoadLogs": Reason("Step Functions delivers the log of loads; the actions take no resources."),
    "EncryptEventLog": Reason(
        "EMR Serverless encrypts Spark's event log and the workers' disks with this key, as the job. It opens nothing "
        "that Secrets Manager, Parameter Store, SQS, SNS or CloudWatch Logs keeps under the key."
    ),
    "StartEncryptedRuns": Reason(
        "EMR Serverless refuses a job run from a caller that may not use the key of its logs and disks. It opens "
        "nothing that Secrets Manager, Parameter Store, SQS, SNS or CloudWatch Logs keeps under the key."
    ),
    "EncryptJobLogs": Reason("EMR Serverless encrypts the job's logs, and its workers' disks, with this key."),
    "EncryptLogGroups": Reason("CloudWatch Logs keeps the pipeline's logs under this key."),
    "EncryptUndelivered": Reason("The queue of starts that could not be delivered is encrypted with this key."),
    "FindEarlierApplications": Reason("To find the applications of earlier releases."),
    "FindLogGroup": Reason("EMR Serverless looks for its log group first."),
    "FindRunningLoads": Reason("A start is refused while a load of this pipeline runs."),
    "FollowAndCancelJobRuns": Reason("To see an attempt's end, and to cancel it when its load is stopped."),
    "FollowRunsOfApplication": Reason(
        "To see an attempt's end, and to cancel it: spark.plain_start starts runs without tags.",
        "A job run has its id only once it has been started; the application is this stack's own.",
    ),
    "HearOfJobRuns": Reason("Step Functions is notified of an attempt's end by this rule, which it creates itself."),
    "InspectBucket": Reason("Where the bucket is, and which uploads are under way."),
    "KeepObjectsOfTables": Reason("Append-only: no object of a table is replaced, whatever a role allows."),
    "HideControlObjects": Reason("The names of the job's records are the job's alone too."),
    "HideControlObjectsBelow": Reason("A listing of what lies above them would name them, unless it stops at '/'."),
    "KeepOutOfControlObjects": Reason("The job's records of its loads are the job's alone."),
    "KeepOutOfJobDatabases": Reason("The databases of this file are the job's: nobody else changes or drops them."),
    "KeepOutOfJobTables": Reason("The tables of this file are the job's, with their partitions."),
    "KeepOutOfTables": Reason("The files of this file's tables are the job's: a party writes its own elsewhere."),
    "KeepUndelivered": Reason("A start that cannot be delivered is kept, so that its cause can be looked into."),
    "ListCheckpoints": Reason("To find what the last run has read."),
    "ListSource": Reason("To find the source's files."),
    "ListUnderPrefix": Reason("To find the pipeline's own objects, and nothing above its prefix."),
    "MakeLogGroup": Reason("EMR Serverless lists this as required for logs in CloudWatch, though the group is there."),
    "NobodyYet": Reason("Nobody may assume the role until Snowflake's IAM user is known."),
    "NotifyOfAlarms": Reason("CloudWatch sends alarms to the encrypted topic."),
    "NotifyOfFailedLoads": Reason("EventBridge names each failed load in a message to the encrypted topic."),
    "PutMetrics": Reason(
        "The job sends what a continuous run measures, since put_metrics is on in lake.yaml.",
        "cloudwatch:PutMetricData has no resources; its condition names the one namespace.",
    ),
    "ReadArtifacts": Reason(
        "The job, its dependencies and its lake.yaml, of this release and of those before it; no other assets.",
    ),
    "ReadCatalog": Reason("The vendor reads the state of the catalog first."),
    "ReadJars": Reason("The jars that lake.yaml gives Spark, such as a database's driver, and no other object."),
    "UseKeyOfJars": Reason("These jars are under this key; only S3 may use it for them."),
    "ReadObjects": Reason(
        "To read the tables' files.",
        "Object keys are made at run time; nothing outside the pipeline's prefix matches.",
    ),
    "ReadOutcomes": Reason("An attempt's outcome file says whether another attempt can help."),
    "ReadParameters": Reason("The parameters that lake.yaml refers to, and no other."),
    "ReadPresentRelease": Reason("To see which loads run, and which release is the present one."),
    "ReadReleaseOfLoads": Reason("An application goes when no load of its release is left."),
    "ReadSecrets": Reason("The secrets that lake.yaml refers to, and no other."),
    "ReadSource": Reason(
        "To read the tables' sources.",
        "A source is a folder, and the files in it come and go; no other folder matches.",
    ),
    "ReadTables": Reason(
        "To look the tables up.",
        "Tables are read as they appear; databases whose names merely begin alike do not match.",
    ),
    "DecryptReplicated": Reason("Objects under the bucket's key are copied too; only S3 may use it for them."),
    "EncryptCopies": Reason("Copies are under the key of the replica; only S3 may use it for them."),
    "FindReplicated": Reason("S3 reads what it is to copy."),
    "ReadReplicated": Reason(
        "S3 copies every object of the bucket, records included.",
        "Every object is copied; object keys are made at run time.",
    ),
    "TrustReplication": Reason("S3 copies the bucket with this role: deployment.replication."),
    "WriteCopies": Reason(
        "Copies go to the one bucket that deployment.replication names.",
        "Copies have the keys of the objects, which are made at run time.",
    ),
    "RequireTls": Reason("Requests without TLS are denied."),
    "ResetTables": Reason(
        "deployment.allow_reset is on: the vendor may drop its tables.",
        "deployment.allow_reset is on in lake.yaml: the vendor may drop the tables of its own databases.",
    ),
    "RestartStreams": Reason("A stream goes on in the release that was deployed."),
    "RunJobsAsTheJobRole": Reason("The job runs with this role and with no other."),
    "StartHandovers": Reason("What earlier releases leave is looked after when a deployment or a load has ended."),
    "StartJobRuns": Reason("To start an attempt on the application of the release that its load began with."),
    "StartLoads": Reason("The schedule starts loads."),
    "StopStreams": Reason("A stream of an earlier release is stopped, and goes on in the one that was deployed."),
    "TakeDestinationRole": Reason("The role of lake.yaml holds the permissions on the destination."),
    "TagJobRuns": Reason("Job runs have the tag by which a later release may follow and cancel them."),
    "TagJobRunsOfApplications": Reason("The same, where EMR Serverless asks for the application."),
    "TellCanaries": Reason(
        "Its input distinguishes a canary from a stream, so that neither keeps the other from running."
    ),
    "StartWatch": Reason("The hours since the last success are counted anew."),
    "WatchOn": Reason("An execution ends if a newer one counts, and hands over before its history is full."),
    "TellOfSilence": Reason("To publish the hours since the last success, for the alarm."),
    "TellOfLoads": Reason("To publish how loads ended, for the alarms."),
    "TraceLoads": Reason("Step Functions traces loads with X-Ray; the actions take no resources."),
    "TrustEmrServerless": Reason("The job runs on EMR Serverless."),
    "TrustParty": Reason("lake.yaml names this party."),
    "UseKeyOfCatalog": Reason("The Data Catalog's metadata is under this key; only Glue may use it for them."),
    "UseKeyOfSecrets": Reason("The secrets of the file are under this key; only their services may use it for them."),
    "UseKeyOfSource": Reason("The source's objects are under this key; only S3 may use it for them."),
    "UseKeyThroughS3": Reason("The bucket's objects are under this key; only S3 may use it for them."),
    "DropPartitions": Reason(
        "To take an undone load out with the partition that it is alone in: undo.drop_partitions is on.",
        "Tables are this pipeline's by their names; names that merely begin alike do not match.",
    ),
    "SetOptimizers": Reason(
        "To have Glue maintain the tables as maintenance in lake.yaml says, and to check that it does.",
        "Tables are this pipeline's by their names; names that merely begin alike do not match.",
    ),
    "ListTables": Reason(
        "To leave files of other tables alone when orphan files are deleted.",
        "Glue lists all tables of a database or none: maintenance.delete_orphans_days is set.",
    ),
    "PassOptimizerRole": Reason("Glue's optimizers work with this role and with no other."),
    "MaintainTables": Reason(
        "To commit what an optimizer has done to a table.",
        "Tables are this pipeline's by their names; names that merely begin alike do not match.",
    ),
    "WriteOptimizerLogs": Reason(
        "Glue's optimizers log what they do.",
        "Glue names the streams in the log groups of its optimizers.",
    ),
    "TrustService": Reason("Redshift's warehouses read the tables by the role: deployment.trust."),
    "TrustGlue": Reason("Glue's optimizers of Iceberg tables take the role: maintenance.optimizer_role."),
    "WriteCheckpoints": Reason(
        "To record what has been read: the next run continues from there.",
        "Spark names what it keeps of each query; nothing outside the pipeline's checkpoints matches.",
    ),
    "WriteLogs": Reason("What driver and executors print."),
    "WriteObjects": Reason(
        "To write files: the job's own, where it also withdraws what cannot be completed, or the party's own.",
        "Object keys are made at run time; nothing outside the pipeline's prefix matches.",
    ),
    "WriteTables": Reason(
        "To register tables, columns and partitions.",
        "Tables are this pipeline's by their names; names that merely begin alike do not match.",
    ),
    **dict.fromkeys(
        VENDOR_STATEMENTS,
        Reason(
            "The vendor's own document, word for word, since it checks for it.",
            "deployment.vendor_verbatim is on: the vendor checks for its own document.",
        ),
    ),
}
"""One of several statements numbered alike is found without the number at its end too."""


def find_reason(sid: str) -> Reason | None:
    """Find the reason for the statement ``sid``; None if none is recorded."""
    return REASONS.get(sid) or REASONS.get(sid.rstrip("0123456789"))


def find_wildcard_reason(sid: str) -> str:
    """Find the reason for the wildcard of the statement ``sid``; ``KeyError`` if none is recorded."""
    reason = find_reason(sid)
    if reason is None or not reason.wildcard:
        raise KeyError(sid)
    return reason.wildcard
