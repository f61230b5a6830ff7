"""Allow whoever deploys: a person what ``cdk deploy`` asks for, and CloudFormation what the stacks are made of.

A person takes the roles of CDK's bootstrap, and these do the rest:
https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html. CloudFormation works with a role of the bootstrap's, to
which ``cdk bootstrap --cloudformation-execution-policies`` attaches a policy, by default ``AdministratorAccess``.
``Execution`` is one that suffices.
"""

from typing import Final

from lakewriter.policy.arns import Arns
from lakewriter.policy.glue_statements import list_own_paths
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.deployment import Deployment, name_deployment
from lakewriter.spec.specification import Spec

_LONGEST: Final = 20
"""Of a stack's name, what CloudFormation keeps of it in the names that it makes, which it shortens."""
_QUALIFIER: Final = "hnb659fds"
_BUCKETS: Final = (
    "s3:CreateBucket", "s3:DeleteBucket", "s3:DeleteBucketPolicy", "s3:GetBucket*", "s3:PutBucket*",
    "s3:Get*Configuration", "s3:Put*Configuration", "s3:TagResource", "s3:UntagResource", "s3:ListTagsForResource",
)  # fmt: skip
"""On buckets alone: no object is read or written."""
_ROLES: Final = (
    "iam:CreateRole",
    "iam:DeleteRole",
    "iam:GetRole",
    "iam:UpdateRole",
    "iam:TagRole",
    "iam:UntagRole", "iam:*RolePolicy", "iam:*RolePermissionsBoundary", "iam:List*Role*", "iam:UpdateAssumeRolePolicy",
    "iam:UpdateRoleDescription", "iam:*Policy", "iam:*PolicyVersion", "iam:ListPolicyVersions",
    "iam:ListEntitiesForPolicy", "iam:*User", "iam:*UserPolicy", "iam:*UserPermissionsBoundary", "iam:List*User*",
    "iam:*AccessKey", "iam:ListAccessKeys",
)  # fmt: skip
_PASSED: Final = ("states", "scheduler", "emr-serverless", "lambda")
_KEYS: Final = (
    "kms:CreateKey", "kms:DescribeKey", "kms:PutKeyPolicy", "kms:Get*", "kms:List*", "kms:*KeyRotation",
    "kms:TagResource", "kms:UntagResource", "kms:UpdateKeyDescription", "kms:EnableKey", "kms:DisableKey",
    "kms:ScheduleKeyDeletion", "kms:CancelKeyDeletion", "kms:CreateGrant",
)  # fmt: skip
_SERVICES: Final = (
    "emr-serverless:*Application", "emr-serverless:*agResource", "states:*StateMachine", "states:*agResource",
    "states:ListTagsForResource", "scheduler:*Schedule", "scheduler:*ScheduleGroup", "scheduler:*agResource",
    "scheduler:ListTagsForResource", "sqs:*Queue", "sqs:*QueueAttributes", "sqs:GetQueueUrl", "sqs:ListQueueTags",
    "sns:*Topic", "sns:*Attributes", "sns:*DataProtectionPolicy", "sns:Subscribe", "sns:Unsubscribe",
    "sns:List*", "sns:*agResource", "cloudwatch:*Alarms", "cloudwatch:PutMetricAlarm", "cloudwatch:*Dashboard",
    "cloudwatch:*Dashboards", "cloudwatch:*agResource", "cloudwatch:ListTagsForResource", "logs:*LogGroup",
    "logs:*LogGroups", "logs:*RetentionPolicy", "logs:*KmsKey", "logs:*agResource", "logs:ListTagsForResource",
    "logs:*ResourcePolicy", "logs:*ResourcePolicies", "logs:CreateLogDelivery", "logs:*DataProtectionPolicy",
    "logs:*IndexPolic*", "logs:PutLogGroupDeletionProtection", "logs:PutBearerTokenAuthentication",
    "lambda:*Function*", "lambda:*agResource", "lambda:GetCodeSigningConfig", "lambda:*RuntimeManagementConfig",
    "lambda:PublishVersion", "lakeformation:*Permissions", "lakeformation:Describe*", "lakeformation:ListResources",
    "ssm:GetParameters",
)  # fmt: skip


def allow_deployer(spec: Spec, deployment: Deployment, arns: Arns, stage: str) -> dict[str, list[Statement]]:
    """Allow a person to deploy (``Bootstrap``), and CloudFormation to make a stage's stacks (``Execution``)."""
    qualifier = deployment.bootstrap_qualifier or _QUALIFIER
    version = arns.parameter(f"/cdk-bootstrap/{qualifier}/version")
    roles = arns.role(f"cdk-{qualifier}-*-role-{arns.account}-{arns.region}")
    return {
        "Bootstrap": [
            allow("TakeBootstrapRoles", ["sts:AssumeRole"], [roles]),
            allow("ReadBootstrapVersion", ["ssm:GetParameter"], [version]),
        ],
        "Execution": _allow_execution(spec, deployment, arns, name_deployment(spec.pipeline, stage)[:_LONGEST]),
    }


def _allow_execution(spec: Spec, deployment: Deployment, arns: Arns, name: str) -> list[Statement]:
    path = deployment.role_path.lstrip("/")
    maintenance = spec.maintenance
    named = [maintenance.find_role_arn(arns.partition, arns.account)] if maintenance and maintenance.makes_role else []
    identities = [arns.role(f"{path}{name}*").replace(":role/", f":{kind}/") for kind in ("role", "policy", "user")]
    passed = {"StringEquals": {"iam:PassedToService": [f"{service}.amazonaws.com" for service in _PASSED]}}
    buckets = [arns.bucket(spec.access.bucket), arns.bucket(f"{name}*")]
    secrets = ["secretsmanager:*Secret", "secretsmanager:GetSecretValue", "secretsmanager:*agResource"]
    assets = arns.objects(f"cdk-{deployment.bootstrap_qualifier or _QUALIFIER}-assets-{arns.account}-{arns.region}")
    databases = list_own_paths(spec) if spec.in_glue else []
    return [
        allow("ManageBuckets", _BUCKETS, buckets),
        allow("ReadAssets", ["s3:GetObject"], [assets]),
        allow("ManageIdentities", _ROLES, [*identities, *named]),
        allow("PassRoles", ["iam:PassRole"], identities[:1], passed),
        allow("ManageKeys", _KEYS, ["*"]),
        allow("ManageSecret", secrets, [arns.secret("VendorUserKey-*")]),
        *(
            [allow("ManageDatabases", ["glue:*Database", "glue:GetTable"], list(map(arns.glue, databases)))]
            if databases
            else []
        ),
        allow("ManageServices", _SERVICES, ["*"], {"StringEquals": {"aws:RequestedRegion": arns.region}}),
    ]
