"""Check the job's credentials, the role it assumes, the bucket's region, and the clock."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final

from lakewriter import aws
from lakewriter.aws.answers import make_bucket_remedy, make_region_remedy
from lakewriter.doctor.probe import Finding, Probe, call, explain_failure
from lakewriter.errors import (
    BucketNotFoundError,
    BucketRegionMismatchError,
    CredentialsInvalidError,
    EndpointUnreachableError,
    LakeError,
    NoAnswerError,
    RoleNotAssumableError,
    S3AccessDeniedError,
)
from lakewriter.spec.access import Access

MOST_SKEW: Final = timedelta(minutes=5)

_ROLE_ARN = re.compile(r"arn:(aws[a-z-]*):iam::(\d{12}):role/(?:[\w+=,.@/-]+/)?([\w+=,.@-]+)")
_CREDENTIALS_REMEDY: Final = (
    "Configure valid credentials: a profile, environment variables, or the job's role; renew them if they expired."
)


@dataclass
class AccessProbes:
    """Probes of identity, role and bucket; ``now`` is this machine's clock."""

    clients: aws.Clients
    now: Callable[[], datetime]
    _answered: dict[str, str] = field(default_factory=dict)

    @property
    def access(self) -> Access:
        """The destination's."""
        return self.clients.access

    @property
    def gate(self) -> str:
        """The name of the probe of the credentials, which all others need."""
        return "role" if self.access.role_arn else "identity"

    def list_probes(self) -> list[Probe]:
        """List the probes, each after those it needs."""
        role = [
            Probe("external id", self.check_external_id),
            Probe("role", self.check_role, ("identity", "external id")),
        ]
        return [
            Probe("identity", self.check_identity),
            *(role if self.access.role_arn else []),
            Probe("bucket", self.check_bucket, (self.gate,)),
            Probe("clock", self.check_clock, ("bucket",)),
        ]

    def check_identity(self) -> Iterator[Finding]:
        """Call sts:GetCallerIdentity with the default credentials; it needs no permission."""
        if self.access.endpoint and not self.access.role_arn:
            yield Finding("identity", "skipped", f"{self.access.endpoint} has no STS to ask.")
            return
        clients = self.clients
        if self.access.role_arn:
            clients = aws.Clients(self.access.model_copy(update={"role_arn": None, "external_id": None}))
        try:
            caller = call("sts:GetCallerIdentity", self.access, clients.sts.get_caller_identity)
        except (NoAnswerError, EndpointUnreachableError) as error:
            if self.access.role_arn:
                raise
            message = f"{error.message} Only a role to assume needs STS, and none is configured."
            yield Finding("identity", "warning", message, error.remedy, error.code)
        except S3AccessDeniedError as error:
            kind = RoleNotAssumableError if self.access.role_arn else S3AccessDeniedError
            raise kind(error.message, remedy=_CREDENTIALS_REMEDY) from error
        else:
            yield Finding("identity", "ok", f"the credentials are those of {caller['Arn']}.")

    def check_external_id(self) -> Iterator[Finding]:
        """Check that the external id can be read, and has no space around it."""
        if self.access.external_id is None:
            message = "no external id is configured; a trust policy that asks for one refuses the role."
            yield Finding("external id", "ok", message)
            return
        value = aws.resolve(self.access.external_id, region=self.access.region)
        if value == value.strip():
            yield Finding("external id", "ok", "the external id can be read.")
            return
        message = "the external id begins or ends with a space, and STS compares it exactly."
        remedy = f"Remove the space from {self.access.key_names.external_id}, or from the secret it refers to."
        yield Finding("external id", "warning", message, remedy, RoleNotAssumableError.code)

    def check_role(self) -> Iterator[Finding]:
        """Call sts:AssumeRole, which is retried while IAM may still be replicating a new role."""
        arn = str(self.access.role_arn)
        session = derive_session_arn(arn)
        if session is None:
            raise RoleNotAssumableError(
                f"{arn!r} is not the ARN of a role; expected arn:aws:iam::<12-digit account>:role/<name>.",
                remedy="Copy the role's complete ARN from the IAM console, without spaces around it.",
            )
        who = call("sts:AssumeRole", self.access, self.clients.sts.get_caller_identity)["Arn"]
        if not who.startswith(session):
            raise RoleNotAssumableError(
                f"requests are signed as {who}, expected a session of {arn} ({session}...).",
                remedy="Check that the ARN is that of the role to write with, in this partition and account, and that "
                "nothing between this machine and AWS replaces credentials.",
            )
        yield Finding("role", "ok", f"{arn} was assumed: {who}.")

    def check_bucket(self) -> Iterator[Finding]:
        """Call HeadBucket, which needs s3:ListBucket; even a 403 says that the bucket exists, and its region."""
        name = self.access.bucket
        try:
            answer = self.clients.s3.head_bucket(Bucket=name)
        except aws.ClientError as error:
            answer = self._read_refusal(error)
        except aws.BotoCoreError as error:
            raise explain_failure(error, f"s3:ListBucket on {name}", self.access) from error
        self._answered = answer["ResponseMetadata"]["HTTPHeaders"]
        self._check_region()
        if answer["ResponseMetadata"]["HTTPStatusCode"] == 403:
            self._require_known_keys()
            message = f"bucket {name!r} denies HeadBucket, as to any role restricted to a prefix; see 'list'."
            yield Finding("bucket", "ok", message)
        else:
            yield Finding("bucket", "ok", f"bucket {name!r} exists in {self.access.region}.")

    def _read_refusal(self, error: Any) -> Any:
        """Read status and headers of a failed HEAD, which has no body; 404 and other errors are raised."""
        status, doing = aws.read_status(error), f"s3:ListBucket on {self.access.bucket}"
        if status == 404:
            raise BucketNotFoundError(
                f"bucket {self.access.bucket!r} does not exist ({doing}).",
                remedy=make_bucket_remedy(self.access),
            ) from error
        if status == 403 or self._read_region(error.response) not in {None, self.access.region}:
            return error.response
        raise explain_failure(error, doing, self.access) from error

    def _require_known_keys(self) -> None:
        """Raise ``CREDENTIALS_INVALID`` for keys that are not accepted: a refused HEAD has no body that says so."""
        try:
            request = partial(self.clients.s3.list_objects_v2, Bucket=self.access.bucket, MaxKeys=1)
            call(f"s3:ListBucket on {self.access.bucket}", self.access, request)
        except CredentialsInvalidError:
            raise
        except LakeError:
            return

    def _check_region(self) -> None:
        region = self._answered.get("x-amz-bucket-region")
        if region not in {None, self.access.region} and not self.access.endpoint:
            raise BucketRegionMismatchError(
                f"bucket {self.access.bucket!r} is in {region!r}, not in {self.access.region!r}.",
                remedy=make_region_remedy(self.access, region),
            )

    @staticmethod
    def _read_region(response: Any) -> str | None:
        headers: dict[str, str] = response["ResponseMetadata"].get("HTTPHeaders", {})
        return headers.get("x-amz-bucket-region")

    def check_clock(self) -> Iterator[Finding]:
        """Compare this machine's clock with the Date header of the bucket's response."""
        date = self._answered.get("date")
        if date is None:
            yield Finding("clock", "skipped", "the answer has no Date header to compare the clock with.")
            return
        skew = abs(self.now() - parsedate_to_datetime(date))
        if skew <= MOST_SKEW:
            yield Finding("clock", "ok", f"clock and store differ by {skew.total_seconds():.0f} s.")
            return
        message = (
            f"this machine's clock and the store's differ by {skew.total_seconds():.0f} s (the store says {date})."
        )
        remedy = "Synchronise the clock (NTP): requests signed 15 minutes off are refused."
        yield Finding("clock", "warning", message, remedy)


def derive_session_arn(role_arn: str) -> str | None:
    """Derive the prefix of the ARNs of a role's sessions; None if ``role_arn`` is not the ARN of a role.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html: a role's path is not part of them.
    """
    role = _ROLE_ARN.fullmatch(role_arn)
    return f"arn:{role[1]}:sts::{role[2]}:assumed-role/{role[3]}/" if role else None
