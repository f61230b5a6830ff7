"""Allow deploying: a person what ``cdk deploy`` asks for, and CloudFormation what the stacks are made of.

A person takes the roles of CDK's bootstrap, and these do the rest:
https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html. CloudFormation works with a role of the bootstrap's, to
which ``cdk bootstrap --cloudformation-execution-policies`` attaches a policy, by default ``AdministratorAccess``.
``Execution`` is one that suffices. It makes identities with ``Boundary`` alone, the most that any of them may do:
https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html. Without a boundary, who writes the
policy of a role may do everything.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.policy.arns import Arns, name_principal, name_services
from lakewriter.policy.boundary import make_boundary
from lakewriter.policy.catalog_statements import allow_key, list_own_paths
from lakewriter.policy.deployed_names import DeployedNames
from lakewriter.policy.sources import allow_key_of_objects
from lakewriter.policy.statements import Conditions, Statement, allow, deny
from lakewriter.policy.table_bucket import makes_table_bucket
from lakewriter.spec.deployment import STACK_TAG, Deployment
from lakewriter.spec.specification import Spec

_BUCKETS: Final = (
    "s3:CreateBucket", "s3:DeleteBucket", "s3:DeleteBucketPolicy", "s3:GetBucket*", "s3:PutBucket*",
    "s3:Get*Configuration", "s3:Put*Configuration", "s3:TagResource", "s3:UntagResource", "s3:ListTagsForResource",
)  # fmt: skip
"""On buckets alone: no object is read or written."""
_TABLE_BUCKETS: Final = (
    "s3tables:CreateTableBucket", "s3tables:DeleteTableBucket", "s3tables:GetTableBucket*",
    "s3tables:PutTableBucket*Configuration", "s3tables:PutTableBucketEncryption",
    "s3tables:PutTableBucketStorageClass", "s3tables:DeleteTableBucketEncryption",
    "s3tables:DeleteTableBucketMetricsConfiguration", "s3tables:TagResource", "s3tables:UntagResource",
    "s3tables:ListTagsForResource", "s3tables:CreateNamespace", "s3tables:GetNamespace", "s3tables:DeleteNamespace",
)  # fmt: skip
"""On table buckets and their namespaces alone: no table is made, read or deleted."""
_BOUNDED: Final = (
    "iam:CreateRole", "iam:CreateUser", "iam:PutRolePermissionsBoundary", "iam:PutUserPermissionsBoundary",
    "iam:PutRolePolicy", "iam:PutUserPolicy", "iam:DeleteRolePolicy", "iam:DeleteUserPolicy",
)  # fmt: skip
_ATTACHED: Final = ("iam:AttachRolePolicy", "iam:AttachUserPolicy", "iam:DetachRolePolicy", "iam:DetachUserPolicy")
_IDENTITIES: Final = (
    "iam:GetRole", "iam:DeleteRole", "iam:UpdateRole", "iam:UpdateRoleDescription", "iam:UpdateAssumeRolePolicy",
    "iam:TagRole", "iam:UntagRole", "iam:GetRolePolicy", "iam:ListRolePolicies", "iam:ListAttachedRolePolicies",
    "iam:ListRoleTags", "iam:GetUser", "iam:DeleteUser", "iam:UpdateUser", "iam:TagUser", "iam:UntagUser",
    "iam:GetUserPolicy", "iam:ListUserPolicies", "iam:ListAttachedUserPolicies", "iam:ListUserTags",
    "iam:ListGroupsForUser", "iam:CreateAccessKey", "iam:UpdateAccessKey", "iam:DeleteAccessKey",
    "iam:ListAccessKeys",
)  # fmt: skip
_WRITE_POLICY: Final = (
    "iam:CreatePolicy",
    "iam:DeletePolicy",
    "iam:CreatePolicyVersion",
    "iam:DeletePolicyVersion",
    "iam:SetDefaultPolicyVersion",
)
_POLICIES: Final = (
    *_WRITE_POLICY, "iam:GetPolicy", "iam:GetPolicyVersion", "iam:ListPolicyVersions", "iam:ListEntitiesForPolicy",
    "iam:TagPolicy", "iam:UntagPolicy",
)  # fmt: skip
_KEYS: Final = (
    "kms:DescribeKey", "kms:PutKeyPolicy", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListResourceTags",
    "kms:EnableKeyRotation", "kms:DisableKeyRotation", "kms:UpdateKeyDescription", "kms:EnableKey", "kms:DisableKey",
    "kms:TagResource", "kms:UntagResource", "kms:ScheduleKeyDeletion", "kms:CancelKeyDeletion",
)  # fmt: skip
_FUNCTIONS: Final = (
    "lambda:*Function*", "lambda:*agResource", "lambda:*RuntimeManagementConfig", "lambda:GetCodeSigningConfig",
    "lambda:PublishVersion",
)  # fmt: skip
_LOG_GROUPS: Final = (
    "logs:CreateLogGroup", "logs:DeleteLogGroup", "logs:PutRetentionPolicy", "logs:DeleteRetentionPolicy",
    "logs:AssociateKmsKey", "logs:DisassociateKmsKey", "logs:TagResource", "logs:UntagResource",
    "logs:ListTagsForResource", "logs:GetDataProtectionPolicy",
    "logs:PutLogGroupDeletionProtection", "logs:PutBearerTokenAuthentication",
)  # fmt: skip
_NAMED: Final[Mapping[str, Sequence[str]]] = {
    "Queues": ("sqs:*Queue", "sqs:*QueueAttributes", "sqs:GetQueueUrl", "sqs:ListQueueTags"),
    "Topics": ("sns:*Topic", "sns:*Attributes", "sns:Subscribe", "sns:ListSubscriptionsByTopic",
               "sns:*DataProtectionPolicy", "sns:*agResource", "sns:ListTagsForResource"),
    "Alarms": ("cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms", "cloudwatch:DescribeAlarms",
               "cloudwatch:PutDashboard", "cloudwatch:DeleteDashboards", "cloudwatch:GetDashboard",
               "cloudwatch:*agResource", "cloudwatch:ListTagsForResource"),
    "LogGroups": _LOG_GROUPS,
    "Rules": ("events:*Rule", "events:*Targets", "events:ListTargetsByRule", "events:*agResource",
              "events:ListTagsForResource"),
    "Schedules": ("scheduler:*Schedule", "scheduler:*ScheduleGroup", "scheduler:*agResource",
                  "scheduler:ListTagsForResource"),
}  # fmt: skip
"""Resources whose names CloudFormation begins with the stack's."""
_BUDGETS: Final = ("budgets:ModifyBudget", "budgets:ViewBudget", "budgets:*agResource", "budgets:ListTagsForResource")
_UNNAMED: Final = (
    "logs:DescribeLogGroups", "logs:DescribeResourcePolicies", "logs:DescribeIndexPolicies", "logs:CreateLogDelivery",
    "sns:Unsubscribe", "sns:GetSubscriptionAttributes", "sns:SetSubscriptionAttributes", "cloudwatch:DescribeAlarms",
)  # fmt: skip
"""Without a resource, or on one whose name nobody can know before it is made."""
_LAKE_FORMATION: Final = ("lakeformation:GrantPermissions", "lakeformation:RevokePermissions",
                          "lakeformation:ListPermissions")  # fmt: skip
_LAKE_FORMATION_OF_DATABASES: Final = ("lakeformation:DescribeResource", "lakeformation:ListResources",
                                       "lakeformation:DescribeLakeFormationIdentityCenterConfiguration")  # fmt: skip
_LF_TAGS: Final = ("lakeformation:AddLFTagsToResource", "lakeformation:RemoveLFTagsFromResource",
                   "lakeformation:GetResourceLFTags")  # fmt: skip
_LF_KEYS: Final = ("lakeformation:CreateLFTag", "lakeformation:GetLFTag", "lakeformation:UpdateLFTag",
                   "lakeformation:DeleteLFTag")  # fmt: skip
_STACKS: Final = ("cloudformation:DescribeStacks", "cloudformation:DescribeStackEvents",
                  "cloudformation:DescribeStackResource", "cloudformation:DescribeStackResources",
                  "cloudformation:GetTemplate")  # fmt: skip
_DEPLOY: Final = ("cloudformation:CreateStack", "cloudformation:UpdateStack", "cloudformation:DeleteStack",
                  "cloudformation:CreateChangeSet")  # fmt: skip
_CHANGE_SETS: Final = ("cloudformation:DescribeChangeSet", "cloudformation:ExecuteChangeSet",
                       "cloudformation:DeleteChangeSet")  # fmt: skip
"""Of change sets that were made with the role."""
_LINKED: Final = name_principal("ops.emr-serverless")
"""EMR Serverless, as it acts by its service-linked role."""
EXECUTION_ROLE: Final = "lakewriter-deployment"
"""The role that CloudFormation is given where there is no bootstrap: the account's owner makes it."""
_BASIC: Final = "service-role/AWSLambdaBasicExecutionRole"
"""CDK attaches this policy to the function that empties buckets."""


def allow_deployer(spec: Spec, deployment: Deployment, arns: Arns, stage: str) -> dict[str, list[Statement]]:
    """Allow a person to deploy (``Bootstrap``), and CloudFormation to make a stage's stacks (``Execution``).

    ``Boundary`` is the permissions boundary of every role and user of the stacks. Raises ``SPEC_INVALID`` if the file
    names none.
    """
    names = DeployedNames(spec.pipeline, stage)
    boundary = deployment.permissions_boundary_arn
    if boundary is None:
        suggested = arns.role(f"{names.common}-boundary").replace(":role/", ":policy/")
        raise SpecInvalidError(
            "deployment.permissions_boundary_arn: expected the ARN of a permissions boundary, without which a person "
            "who deploys could give a role of the stacks every right in the account.",
            remedy=f"Set it to {suggested}, make that policy of what this command then prints as 'Boundary', and "
            "deploy once with the rights that you had.",
        )
    return {
        "Bootstrap": _allow_bootstrap(deployment, arns, names),
        "Execution": [
            *_allow_storage(spec, deployment, arns, names),
            *_allow_identities(spec, deployment, arns, names, boundary),
            *_allow_keys(deployment, arns),
            *_allow_catalog(spec, deployment, arns),
            *_allow_services(deployment, arns, names),
        ],
        "Boundary": make_boundary(spec, deployment, arns, names),
    }


def allow_key_administration(deployment: Deployment, arns: Arns) -> Statement:
    """Let CloudFormation's role administer a key by the key's own policy: no permission of the role's can tell this key
    apart from others before it is made, and anybody who may tag keys could claim one by its tags.

    The principal is a condition, since KMS refuses a policy that names a role which is not there yet.
    https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-overview.html
    """
    role = _find_execution_role(deployment, arns)
    return {
        "Sid": "AdministerByDeployment",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": list(_KEYS),
        "Resource": "*",
        "Condition": {"StringEquals": {"kms:CallerAccount": arns.account}, "ArnEquals": {"aws:PrincipalArn": role}},
    }


def _find_execution_role(deployment: Deployment, arns: Arns) -> str:
    """Find the role that CloudFormation works with: the bootstrap's, or without one ``EXECUTION_ROLE``."""
    if deployment.artifact_bucket:
        return arns.role(EXECUTION_ROLE)
    return arns.role(f"cdk-{deployment.qualifier}-cfn-exec-role-{arns.account}-{arns.region}")


def _allow_publishing(bucket: str, deployment: Deployment, arns: Arns, names: DeployedNames) -> list[Statement]:
    """Allow a person to publish an assembly, and to have CloudFormation deploy it with a role that is given to it."""
    stacks = [names.stack_arn(stack, arns) for stack in names.stacks]
    to_cloudformation = {"StringEquals": {"iam:PassedToService": name_principal("cloudformation")}}
    with_role: Conditions = {"StringEquals": {"cloudformation:RoleArn": _find_execution_role(deployment, arns)}}
    return [
        allow("Publish", ["s3:GetObject", "s3:PutObject"], [arns.objects(bucket, f"{names.common}/*")]),
        allow("FindPublished", ["s3:ListBucket"], [arns.bucket(bucket)]),
        # CloudFormation reads a template as its caller.
        *allow_key_of_objects(
            "EncryptPublished", ["kms:GenerateDataKey", "kms:Decrypt"], deployment.artifact_kms_key_arn
        ),
        allow("DeployStacks", _DEPLOY, stacks, with_role),
        allow("FollowStacks", [*_STACKS, *_CHANGE_SETS, "cloudformation:GetTemplateSummary"], stacks),
        allow("ProtectStack", ["cloudformation:UpdateTerminationProtection"], stacks[:1]),
        allow("ReadTemplates", ["cloudformation:GetTemplateSummary", "cloudformation:ValidateTemplate"], ["*"]),
        allow("GiveRole", ["iam:PassRole"], [_find_execution_role(deployment, arns)], to_cloudformation),
    ]


def _allow_bootstrap(deployment: Deployment, arns: Arns, names: DeployedNames) -> list[Statement]:
    if deployment.artifact_bucket:
        return _allow_publishing(deployment.artifact_bucket, deployment, arns, names)
    kinds = ("deploy", "file-publishing", "lookup")
    taken = [arns.role(f"cdk-{deployment.qualifier}-{kind}-role-{arns.account}-{arns.region}") for kind in kinds]
    return [
        allow("TakeBootstrapRoles", ["sts:AssumeRole"], taken),
        allow("ReadBootstrapVersion", ["ssm:GetParameter"], [_find_version(deployment, arns)]),
        allow("ReadStacks", _STACKS, [names.stack_arn(stack, arns) for stack in names.stacks]),
    ]


def _allow_storage(spec: Spec, deployment: Deployment, arns: Arns, names: DeployedNames) -> Iterator[Statement]:
    made = [] if deployment.existing.bucket or spec.access.endpoint else [arns.bucket(spec.access.bucket)]
    yield allow("ManageBuckets", _BUCKETS, [*made, arns.bucket(f"{names.begin(names.destination, 20)}*")])
    if makes_table_bucket(spec, deployment):
        yield allow("ManageTableBucket", _TABLE_BUCKETS, [str(spec.table_bucket)])
    assets = arns.objects(deployment.name_assets(arns.account, arns.region))
    yield allow("ReadAssets", ["s3:GetObject"], [assets])
    yield from allow_key_of_objects("DecryptAssets", ["kms:Decrypt"], deployment.artifact_kms_key_arn)


def _allow_identities(
    spec: Spec, deployment: Deployment, arns: Arns, names: DeployedNames, boundary: str
) -> Iterator[Statement]:
    """Allow identities of the stage's names with the boundary, and the policies of its stacks."""
    path = deployment.role_path.lstrip("/")
    maintenance = spec.maintenance
    named = [maintenance.find_role_arn(arns.partition, arns.account)] if maintenance and maintenance.makes_role else []
    roles = [*(arns.role(f"{path}{start}*") for start in names.identities), *named]
    users = [role.replace(":role/", ":user/") for role in roles[:1]] if deployment.user else []
    policies = [arns.role(f"{path}{start}*").replace(":role/", ":policy/") for start in names.policies]
    basic = [f"arn:{arns.partition}:iam::aws:policy/{_BASIC}"] if deployment.destroy_data else []
    bounded: Conditions = {"StringEquals": {"iam:PermissionsBoundary": boundary}}
    attached: Conditions = {**bounded, "ArnLike": {"iam:PolicyARN": [*policies, *basic]}}
    services = [
        "states",
        "scheduler",
        "events",
        "emr-serverless",
        *(["lambda"] if deployment.destroy_data else []),
        *(["s3"] if deployment.replication else []),
    ]
    passed: Conditions = {"StringEquals": {"iam:PassedToService": [*map(name_principal, services)]}}
    linked: Conditions = {"StringEquals": {"iam:AWSServiceName": _LINKED}}
    others = [f"policy/{path}{names.common}-{name}*" for name in ("execution", "bootstrap", "boundary")]
    kept_arns = [boundary, *(arns.role("").replace("role/", other) for other in others)]
    yield allow("MakeBoundedIdentities", _BOUNDED, [*roles, *users], bounded)
    # A machine's role is not of the stage's names; it too needs the boundary, and gets the stage's policies alone.
    hosts = [entry.host for entry in deployment.trust if entry.host]
    yield allow("AttachOwnPolicies", _ATTACHED, [*roles, *users, *hosts], attached)
    yield allow("ManageIdentities", _IDENTITIES, [*roles, *users])
    yield allow("ManagePolicies", _POLICIES, policies)
    yield allow("PassRoles", ["iam:PassRole"], roles, passed)
    yield allow("LinkEmrServerless", ["iam:CreateServiceLinkedRole"],
                [arns.role(f"aws-service-role/{_LINKED}/*")], linked)  # fmt: skip
    yield deny("KeepBoundary", ["iam:DeleteRolePermissionsBoundary", "iam:DeleteUserPermissionsBoundary"], ["*"])
    yield deny("KeepOwnPolicies", _WRITE_POLICY, kept_arns)


def _allow_keys(deployment: Deployment, arns: Arns) -> Iterator[Statement]:
    """Allow making a key, which then has ``allow_key_administration`` in its policy, or looking at an existing one."""
    existing = deployment.existing.kms_key_arn
    if existing:
        yield allow("DescribeKey", ["kms:DescribeKey"], [existing])
    elif deployment.makes_key:
        region: Conditions = {"StringEquals": {"aws:RequestedRegion": arns.region}}
        yield allow("MakeKey", ["kms:CreateKey"], ["*"], region)
        if deployment.tags:
            only: Conditions = {"ForAllValues:StringEquals": {"aws:TagKeys": list(deployment.tags)}}
            yield allow("TagKey", ["kms:TagResource"], ["*"], {**region, **only})
    if deployment.user and existing:
        through = {"StringEquals": {"kms:ViaService": name_services(["secretsmanager"], arns.region)}}
        yield allow("EncryptSecret", ["kms:Decrypt", "kms:GenerateDataKey"], [existing], through)


def _allow_catalog(spec: Spec, deployment: Deployment, arns: Arns) -> Iterator[Statement]:
    if spec.access.catalog_account:
        return
    region: Conditions = {"StringEquals": {"aws:RequestedRegion": arns.region}}
    paths = list(map(arns.glue, list_own_paths(spec)))
    if spec.in_glue and not deployment.existing.databases:
        yield allow("ManageDatabases", ["glue:*Database", "glue:GetTable"], paths)
        yield allow("ReadLakeFormation", _LAKE_FORMATION_OF_DATABASES, ["*"], region)
        yield from allow_key(deployment, is_asked=True)
    if spec.in_glue and deployment.lake_formation:
        yield allow("ReadDatabases", ["glue:GetDatabase", "glue:GetTable"], paths)
        yield allow("GrantInLakeFormation", _LAKE_FORMATION, ["*"], region)
        if deployment.governed:
            keys = _LF_KEYS if deployment.governed.create_tags else ()
            yield allow("TagInLakeFormation", [*_LF_TAGS, *keys], ["*"], region)


def _allow_services(deployment: Deployment, arns: Arns, names: DeployedNames) -> Iterator[Statement]:
    region: Conditions = {"StringEquals": {"aws:RequestedRegion": arns.region}}
    for name, actions in _NAMED.items():
        yield allow(f"Manage{name}", actions, names.list_arns(name, arns))
    yield allow("ManageUnnamed", _UNNAMED, ["*"], region)
    yield from _allow_by_tag(
        "Applications", names.pipeline, [arns.applications()], create_on=["*"],
        create=["emr-serverless:CreateApplication"], tag="emr-serverless:TagResource",
        change=["emr-serverless:*Application", "emr-serverless:UntagResource"],
    )  # fmt: skip
    yield from _allow_by_tag(
        "StateMachines", names.pipeline, names.list_arns("StateMachines", arns),
        create=["states:CreateStateMachine"], tag="states:TagResource",
        change=["states:UpdateStateMachine", "states:DeleteStateMachine", "states:DescribeStateMachine",
                "states:UntagResource", "states:ListTagsForResource"],
    )  # fmt: skip
    if deployment.user:
        yield from _allow_by_tag(
            "Secret", names.destination, [arns.regional("secretsmanager", "secret:VendorUserKey-*")],
            create=["secretsmanager:CreateSecret"], tag="secretsmanager:TagResource",
            change=["secretsmanager:DeleteSecret", "secretsmanager:UpdateSecret", "secretsmanager:DescribeSecret",
                    "secretsmanager:GetSecretValue", "secretsmanager:UntagResource"],
        )  # fmt: skip
    if deployment.alarms.monthly_budget_usd:
        yield allow("ManageBudgets", _BUDGETS, names.list_arns("Budgets", arns))
    if deployment.destroy_data:
        yield allow("ManageFunctions", _FUNCTIONS, names.list_arns("Functions", arns))
    if deployment.network:
        yield from _allow_network(deployment.network.subnet_ids, deployment.network.security_group_ids, arns)
    references = [secret.reference for entry in deployment.trust for secret in entry.external_ids]
    parameters = [arns.parameter(reference[1]) for reference in references if reference and reference[0] == "ssm"]
    yield allow("ReadParameters", ["ssm:GetParameters"], [_find_version(deployment, arns), *parameters])
    yield allow("ReadOutputs", ["cloudformation:DescribeStacks"], [names.stack_arn(names.destination, arns)])


def _allow_by_tag(
    name: str,
    stack: str,
    resources: Sequence[str],
    *,
    create: Sequence[str],
    tag: str,
    change: Sequence[str],
    create_on: Sequence[str] = (),
) -> Iterator[Statement]:
    """Allow making resources with the stack's tag, and changing those that have it; none with another stack's tag is
    tagged anew. One that has no such tag could be claimed: its name alone binds it."""
    requested = {f"aws:RequestTag/{STACK_TAG}": stack}
    existing = {f"aws:ResourceTag/{STACK_TAG}": stack}
    yield allow(f"Make{name}", create, create_on or resources, {"StringEquals": requested})
    yield allow(f"Tag{name}", [tag], resources, {"StringEquals": requested, "StringEqualsIfExists": existing})
    yield allow(f"Change{name}", change, resources, {"StringEquals": existing})


def _allow_network(subnets: Sequence[str], groups: Sequence[str], arns: Arns) -> Iterator[Statement]:
    """Allow EMR Serverless to try an interface in the file's subnets, as it does for the maker of an application.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/security-iam-user-access-policies.html
    """
    through = {"StringEquals": {"aws:CalledViaLast": _LINKED}}
    named = [*(f"subnet/{subnet}" for subnet in subnets), *(f"security-group/{group}" for group in groups)]
    network_arns = [arns.regional("ec2", resource) for resource in ("network-interface/*", *named)]
    yield allow("TryNetwork", ["ec2:CreateNetworkInterface"], network_arns, through)


def _find_version(deployment: Deployment, arns: Arns) -> str:
    return arns.parameter(f"/cdk-bootstrap/{deployment.qualifier}/version")
