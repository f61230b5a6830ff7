"""Publish an assembly: upload the files that its stacks refer to, without the CDK command line.

An assembly has for each stack ``NAME.assets.json``, which lists sources and destinations of files:
https://docs.aws.amazon.com/cdk/v2/guide/assets.html
"""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lakewriter import aws
from lakewriter.errors import LakeError, S3AccessDeniedError, SpecInvalidError
from lakewriter.policy.arns import find_partition, find_url_suffix
from lakewriter.spec.access import Access

_MANIFEST: Final = ".assets.json"
_TEMPLATE: Final = ".template.json"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of an archive, so that the same folder makes the same bytes."""


@dataclass(frozen=True)
class Asset:
    """A file of the assembly, or a folder that becomes an archive, and the place that it is uploaded to."""

    source: Path
    bucket: str
    key: str
    owner: str
    """The account that must own the bucket. S3 refuses calls on another account's bucket: an attacker may have created
    it under a name that is easy to guess
    (https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html).
    """

    @property
    def is_template(self) -> bool:
        """True for the template of a stack."""
        return self.source.name.endswith(_TEMPLATE)

    def read(self) -> bytes:
        """Read the bytes to upload."""
        if not self.source.is_dir():
            return self.source.read_bytes()
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(path for path in self.source.rglob("*") if path.is_file()):
                entry = zipfile.ZipInfo(path.relative_to(self.source).as_posix(), _EPOCH)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
        return packed.getvalue()

    def explain(self, error: aws.ClientError | aws.BotoCoreError, action: str, region: str) -> LakeError:
        """Make the error to raise for what S3 answered."""
        access = Access(bucket=self.bucket, region=region)
        explained = aws.explain(error, doing=f"{action} on s3://{self.bucket}/{self.key}", access=access)
        if not isinstance(explained, S3AccessDeniedError):
            return explained
        return S3AccessDeniedError(
            f"{action} on s3://{self.bucket}/{self.key} was denied.",
            remedy=f"Check that the policies of these credentials allow it, and that the bucket belongs to account "
            f"{self.owner}. Where it is meant to be another account's, give --bucket-owner. If the bucket's policy "
            "demands a header of encryption, allow s3:GetEncryptionConfiguration too: the header is then sent.",
        )


@dataclass(frozen=True)
class Published:
    """What has been uploaded: files and bytes that were not there before, and the URL of each stack's template."""

    uploaded: int
    present: int
    bytes: int
    templates: Mapping[str, str]


def list_assets(assembly: Path, account: str, region: str, owner: str) -> Iterator[Asset]:
    """List what the stacks of an assembly refer to, in the order of their manifests.

    ``account`` is the account of the stacks, ``owner`` that of the buckets. Raises ``SPEC_INVALID`` for a folder that
    is no assembly, and for an assembly of another region.
    """
    manifests = sorted(assembly.glob(f"*{_MANIFEST}"))
    if not manifests:
        raise SpecInvalidError(
            f"{assembly} has no {_MANIFEST[1:]}: expected an assembly, such as cdk.out.",
            remedy="Write one: python app.py -c stage=STAGE.",
        )
    values = {"AccountId": account, "Region": region, "Partition": find_partition(region)}
    for manifest in manifests:
        content = json.loads(manifest.read_text("utf-8"))
        for asset in content.get("files", {}).values():
            for to in asset["destinations"].values():
                if to.get("region", region) != region:
                    raise SpecInvalidError(
                        f"{manifest.name}: the stack is of the region {to['region']!r}, expected {region!r}.",
                        remedy=f"Give --region {to['region']}.",
                    )
                bucket, key = (_fill(to[name], values) for name in ("bucketName", "objectKey"))
                yield Asset(assembly / asset["source"]["path"], bucket, key, owner)


def publish(assembly: Path, region: str | None = None, bucket_owner: str | None = None) -> Published:
    """Upload what is not there yet: a key holds the digest of its content, so what is there is the same.

    The account is that of the default credentials, and so is the region where none is given. The buckets must belong to
    ``bucket_owner``, by default the same account.
    """
    s3, sts = (aws.make_default_client(service, region) for service in ("s3", "sts"))
    region = str(s3.meta.region_name)
    try:
        account = str(sts.get_caller_identity()["Account"])
    except (aws.ClientError, aws.BotoCoreError) as error:
        raise aws.explain(error, doing="sts:GetCallerIdentity", access=Access(bucket="", region=region)) from error
    uploaded = present = size = 0
    templates = {}
    for asset in list_assets(assembly, account, region, bucket_owner or account):
        if asset.is_template:
            url = f"https://{asset.bucket}.s3.{region}.{find_url_suffix(region)}/{asset.key}"
            templates[asset.source.name.removesuffix(_TEMPLATE)] = url
        if _exists(s3, asset, region):
            present += 1
            continue
        body = asset.read()
        try:
            _put(s3, asset, body)
        except (aws.ClientError, aws.BotoCoreError) as error:
            raise asset.explain(error, "s3:PutObject", region) from error
        uploaded, size = uploaded + 1, size + len(body)
    return Published(uploaded, present, size, templates)


def _put(s3: Any, asset: Asset, body: bytes) -> None:
    """Put an object. A bucket whose policy demands a header of encryption gets that of its default.

    The header is not sent at once, since a publisher need not have the right to read the default.
    """
    request = {"Bucket": asset.bucket, "Key": asset.key, "Body": body, "ExpectedBucketOwner": asset.owner}
    try:
        s3.put_object(**request)
    except aws.ClientError as error:
        header = _read_encryption(s3, asset) if aws.read_status(error) == 403 else {}
        if not header:
            raise
        s3.put_object(**request, **header)


def _read_encryption(s3: Any, asset: Asset) -> dict[str, str]:
    """Read the default encryption of a bucket as parameters of PutObject; empty if it cannot be read."""
    try:
        answer = s3.get_bucket_encryption(Bucket=asset.bucket, ExpectedBucketOwner=asset.owner)
    except (aws.ClientError, aws.BotoCoreError):
        return {}
    rules = answer["ServerSideEncryptionConfiguration"]["Rules"]
    named = [rule["ApplyServerSideEncryptionByDefault"] for rule in rules
             if "ApplyServerSideEncryptionByDefault" in rule]  # fmt: skip
    names = {"ServerSideEncryption": "SSEAlgorithm", "SSEKMSKeyId": "KMSMasterKeyID"}
    return {name: default[given] for default in named[:1] for name, given in names.items() if given in default}


def _exists(s3: Any, asset: Asset, region: str) -> bool:
    """Return True if the object exists. Without permission to list the bucket, S3 answers 403 for an absent object."""
    try:
        s3.head_object(Bucket=asset.bucket, Key=asset.key, ExpectedBucketOwner=asset.owner)
    except (aws.ClientError, aws.BotoCoreError) as error:
        if isinstance(error, aws.ClientError) and aws.read_status(error) in {403, 404}:
            return False
        raise asset.explain(error, "s3:GetObject", region) from error
    return True


def _fill(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"${{AWS::{name}}}", value)
    return text
