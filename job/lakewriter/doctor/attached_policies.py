"""Compare what the job may do with what it needs: its role's policies, and the keys of the buckets that it reads."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from lakewriter import aws
from lakewriter.doctor.probe import Finding, Probe, call, find_cause_code
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.policy.arns import Arns, find_partition
from lakewriter.policy.difference import Permission, find_uncovered, list_permissions
from lakewriter.policy.role_documents import Document, Who, make_documents
from lakewriter.policy.sources import list_source_buckets
from lakewriter.report import format_size
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec

_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/(?:.*/)?([^/]+)")
_MOST_SHOWN: Final = 5
_NOT_FOUND: Final = 404
_AWS_KEY: Final = "alias/aws/s3"
_AWS_KEY_OF_GLUE: Final = "alias/aws/glue"
_CATALOG: Final = "key of the Data Catalog"
_AS_CALLER: Final = "SSE-KMS"
"""Glue uses the key as its caller; with ``SSE-KMS-WITH-SERVICE-ROLE`` callers need no right on it."""
_NO_KEY: Final = "ServerSideEncryptionConfigurationNotFoundError"
"""Of a bucket that was made before every bucket had a default."""
_REMEDY: Final = "Deploy the stacks again, or attach what `lakewriter policy` prints for this role."
_UNNAMED: Final = "the file names no role that writes: CloudFormation names the role that the stacks make."
_NAME_IT: Final = (
    "For a role of your own, set {role_arn} or deployment.existing.job_role_arn; for the stacks' role, have "
    "CloudFormation detect the drift of the destination's stack."
)
_UNREADABLE: Final = (
    "Nothing has to be done. To compare the policies, allow iam:GetRole, iam:ListRolePolicies, iam:GetRolePolicy, "
    "iam:ListAttachedRolePolicies, iam:GetPolicy and iam:GetPolicyVersion."
)


@dataclass(frozen=True)
class PolicyProbes:
    """One probe of the role that the job has at its destination; ``gate`` is the probe of its credentials."""

    spec: Spec
    deployment: Deployment
    clients: aws.Clients
    gate: str

    def list_probes(self) -> list[Probe]:
        """List the probe; none for a custom endpoint, whose store has no IAM of AWS."""
        return [] if self.spec.access.endpoint else [Probe("policies", self.check_policies, (self.gate,))]

    def check_policies(self) -> Iterator[Finding]:
        """Compare permission by permission, however they are grouped into statements."""
        role = self._find_role()
        if role is None:
            yield Finding(
                "policies", "skipped", _UNNAMED, _NAME_IT.format(role_arn=self.spec.access.key_names.role_arn)
            )
            return
        account, name = role
        try:
            attached = list_permissions(self._read_attached(name))
        except LakeError as error:
            yield Finding("policies", "skipped", f"role {name!r}: {error.message}", _UNREADABLE)
            return
        yield self._compare(name, account, attached)

    def _compare(self, name: str, account: str, attached: Sequence[Permission]) -> Finding:
        arns = self._make_arns(account, attached)
        who = Who.LOADER if self.spec.access.role_arn else Who.JOB
        needed = list_permissions(make_documents(self.spec, self.deployment, who, arns).values())
        lacking = find_uncovered(needed, attached)
        excess = find_uncovered(attached, needed)
        beyond = [permission for permission in excess if self._is_on_destination(permission, arns)]
        if not lacking and not beyond:
            return Finding("policies", "ok", f"role {name!r} has what the file needs on its destination, and no more.")
        said = [f"lacks {_show_permissions(lacking)}"] if lacking else []
        said += [f"may do more than the file needs: {_show_permissions(beyond)}"] if beyond else []
        return Finding("policies", "warning", f"role {name!r} {'; it '.join(said)}.", _REMEDY)

    def _find_role(self) -> tuple[str, str] | None:
        """Find account and name of the role in the file, since the caller here need not be the job."""
        arn = _ROLE.fullmatch(self.spec.access.role_arn or self.deployment.existing.job_role_arn or "")
        return (arn[1], arn[2]) if arn else None

    def _make_arns(self, account: str, attached: Sequence[Permission]) -> Arns:
        """Make the destination's ARNs; the ARN of a key that a stack made is read from the role's policy."""
        region = self.spec.access.region
        partition = find_partition(region)
        keys = (permission.resource for permission in attached if permission.action.startswith("kms:"))
        key = None
        if self.deployment.encryption == "SSE-KMS" and not self.deployment.existing.kms_key_arn:
            key = next(keys, f"arn:{partition}:kms:{region}:{account}:key/*")
        return Arns(partition, account, region, key, self.spec.access.catalog_account)

    def _is_on_destination(self, permission: Permission, arns: Arns) -> bool:
        """Return True for S3, S3 Tables and Glue on this destination; other permissions, such as writing logs, are not
        compared."""
        bucket = arns.bucket(self.spec.access.bucket)
        if not permission.action.lower().startswith(("s3:", "s3tables:", "glue:", "*")):
            return False
        starts = (f"{bucket}/", arns.glue(""), *([self.spec.table_bucket] if self.spec.table_bucket else []))
        return permission.resource in ("*", bucket) or permission.resource.startswith(starts)

    def _read_attached(self, role: str) -> Iterator[Document]:
        """Read inline and managed policies as the caller: the role itself needs no permission to read IAM."""
        caller = aws.Clients(self.spec.access.model_copy(update={"role_arn": None, "external_id": None}))
        ask = partial(self._call_iam, caller.iam)
        ask("GetRole", RoleName=role)
        for name in ask("ListRolePolicies", RoleName=role)["PolicyNames"]:
            yield ask("GetRolePolicy", RoleName=role, PolicyName=name)["PolicyDocument"]
        for policy in ask("ListAttachedRolePolicies", RoleName=role)["AttachedPolicies"]:
            arn = policy["PolicyArn"]
            version = ask("GetPolicy", PolicyArn=arn)["Policy"]["DefaultVersionId"]
            yield ask("GetPolicyVersion", PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]

    def _call_iam(self, iam: Any, action: str, **arguments: str) -> Any:
        """Call IAM and return its response, with all pages of a list in one."""
        operation = re.sub(r"(?<!^)([A-Z])", r"_\1", action).lower()

        def request() -> Any:
            if iam.can_paginate(operation):
                return iam.get_paginator(operation).paginate(**arguments).build_full_result()
            return getattr(iam, operation)(**arguments)

        return call(f"iam:{action} on {next(iter(arguments.values()))}", self.spec.access, request)


@dataclass(frozen=True)
class KeyProbes:
    """A probe of each bucket that the deployed job reads, and of the Data Catalog: the key of what is new is one that
    it may use. Another one of each jar in S3 that it gives Spark."""

    spec: Spec
    deployment: Deployment

    def list_probes(self) -> list[Probe]:
        """List the probes; none where no stacks are deployed: loads then have the rights of the person who runs
        them."""
        if self.deployment == Deployment():
            return []
        keys = [Probe(f"key of {bucket}", partial(self.check_key, bucket)) for bucket in self._list_keys()]
        jars = [Probe(f"jar {jar}", partial(self.check_jar, jar)) for jar in self.deployment.jar_objects]
        return [*keys, *([Probe(_CATALOG, self.check_catalog)] if self.spec.in_glue else []), *jars]

    def check_catalog(self) -> Iterator[Finding]:
        """Compare the key of the Data Catalog's metadata with the one that the file gives for it."""
        access, setting = self.spec.access, "deployment.catalog_kms_key_arn"
        glue = aws.make_default_client("glue", access.region)
        catalog_id = {"CatalogId": access.catalog_account} if access.catalog_account else {}
        doing = "glue:GetDataCatalogEncryptionSettings"
        try:
            answer = call(doing, access, lambda: glue.get_data_catalog_encryption_settings(**catalog_id))
        except LakeError as error:
            yield Finding(_CATALOG, "skipped", error.message, "Nothing has to be done, if its key is one of AWS's own.")
            return
        at_rest = answer["DataCatalogEncryptionSettings"].get("EncryptionAtRest", {})
        key = str(at_rest.get("SseAwsKmsKeyId", "")) if at_rest.get("CatalogEncryptionMode") == _AS_CALLER else ""
        given = self.deployment.catalog_kms_key_arn
        if not key or key.endswith(_AWS_KEY_OF_GLUE) or (given or "").endswith(f"/{key.rpartition('/')[2]}"):
            yield Finding(_CATALOG, "ok", f"its metadata is under {key or 'no key of yours'}, which the roles may use.")
            return
        message = (
            f"its metadata is under {key}, and {setting} has {given or 'no key'}: no role may read or write tables."
        )
        yield Finding(_CATALOG, "warning", message, f"Set {setting} to the ARN of this key, and deploy.")

    def check_jar(self, jar: str) -> Iterator[Finding]:
        """Look whether the object is there, without which Spark does not start."""
        name, url = f"jar {jar}", urlsplit(jar)
        key = url.path.lstrip("/")
        s3 = aws.make_default_client("s3", self.spec.access.region)
        try:
            # S3 answers 403 to a HEAD of what is not there, unless the caller may list.
            listed = s3.list_objects_v2(Bucket=url.netloc, Prefix=key, MaxKeys=1).get("Contents", [])
        except (aws.ClientError, aws.BotoCoreError) as error:
            if not isinstance(error, aws.ClientError) or aws.read_status(error) != _NOT_FOUND:
                remedy = "Nothing has to be done, if it is there: the stacks let the job's role read it."
                yield Finding(name, "skipped", f"{jar} could not be looked for: {error}.", remedy)
                return
            listed = []
        if [item["Key"] for item in listed] == [key]:
            yield Finding(name, "ok", f"{jar} is there, {format_size(listed[0]['Size'])}.")
            return
        remedy = "Upload the jar, or correct deployment.jars."
        yield Finding(name, "failed", f"there is no object {jar}.", remedy, SpecInvalidError.code)

    def check_key(self, bucket: str) -> Iterator[Finding]:
        """Compare the bucket's default encryption with the key that the file gives for it."""
        name, (setting, given) = f"key of {bucket}", self._list_keys()[bucket]
        s3 = aws.make_default_client("s3", self.spec.access.region)
        doing = f"s3:GetEncryptionConfiguration on {bucket}"
        try:
            answer = call(doing, self.spec.access, lambda: s3.get_bucket_encryption(Bucket=bucket))
            key = _read_customer_key(answer)
        except LakeError as error:
            if find_cause_code(error) != _NO_KEY:
                yield Finding(name, "skipped", error.message, "Nothing has to be done, if its key is one of AWS's own.")
                return
            key = None
        if key is None or (given is not None and given.endswith(f"/{key.rpartition('/')[2]}")):
            yield Finding(
                name, "ok", f"bucket {bucket!r} encrypts with {key or 'a key of AWS'}, which the job may use."
            )
            return
        has = f"{setting} has {given}" if given else f"{setting} has no key of it"
        message = f"bucket {bucket!r} encrypts with {key}, and {has}: the job's role may not decrypt."
        yield Finding(name, "warning", message, f"Set {setting} to the ARN of this key, and deploy.")

    def _list_keys(self) -> dict[str, tuple[str, str | None]]:
        """By bucket, the setting that gives its key, and the key."""
        deployment, region = self.deployment, self.spec.access.region
        given = {source_bucket.bucket: source_bucket.kms_key_arn for source_bucket in deployment.source_buckets}
        setting = "kms_key_arn of deployment.source_buckets"
        jars = [urlsplit(jar).netloc for jar in deployment.jar_objects]
        buckets = [*list_source_buckets(self.spec, deployment), *jars]
        keys = {bucket: (setting, given.get(bucket)) for bucket in buckets}
        artifacts = deployment.artifact_bucket
        if artifacts is None and deployment.account and region:
            artifacts = deployment.name_assets(deployment.account, region)
        if artifacts:
            keys[artifacts] = ("deployment.artifact_kms_key_arn", deployment.artifact_kms_key_arn)
        return keys


def _read_customer_key(answer: Mapping[str, Any]) -> str | None:
    """Read the key of a bucket's new objects; None for keys of AWS, which every role of the account may use by S3."""
    rules = answer["ServerSideEncryptionConfiguration"]["Rules"]
    defaults = [rule.get("ApplyServerSideEncryptionByDefault", {}) for rule in rules]
    key = next((default["KMSMasterKeyID"] for default in defaults if "KMSMasterKeyID" in default), None)
    return None if key is None or key.endswith(_AWS_KEY) else str(key)


def _show_permissions(permissions: Sequence[Permission]) -> str:
    shown = ", ".join(map(str, permissions[:_MOST_SHOWN]))
    rest = len(permissions) - _MOST_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
