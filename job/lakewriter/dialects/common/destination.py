"""Define what the settings of all destinations have in common: role, keys, endpoint and region, under any key.

Each rule is here once; messages name the keys of the destination's own model, by its ``key_names``.
"""

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, Field, model_validator

from lakewriter.dialects.common.places import require_match, require_tls
from lakewriter.dialects.common.problems import suggest_nearest
from lakewriter.spec.access import Access, KeyNames
from lakewriter.spec.model import FileModel

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_DIRECTIONS: Final = (
    "north", "south", "east", "west", "central", "northeast", "northwest", "southeast", "southwest",
)  # fmt: skip
"""Each region's name has one, https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-regions.html"""
_REGION: Final = re.compile(rf"[a-z]{{2,4}}(-[a-z]+)?-({'|'.join(_DIRECTIONS)})-\d{{1,2}}")
_REGION_PARTS: Final = re.compile(r"([a-z]{2,4}?(?:-[a-z]+)??)-?([a-z]+)-?(\d{1,2})", re.IGNORECASE)
_STORE_REGION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


def require_bucket(value: str) -> str:
    """Return ``value``; raise ``ValueError`` if it cannot be the name of a bucket."""
    return require_match(_BUCKET, value, "a bucket name: 3 to 63 lower-case letters, digits, '.' and '-'")


def require_region(value: str, *, endpoint: Any) -> str:
    """Return ``value``; raise ``ValueError`` if it is not a region of AWS or, with ``endpoint``, cannot be the name of
    a region."""
    if endpoint:
        return require_match(_STORE_REGION, value, "the store's name for its region, such as 'us-east-1' or 'nyc3'")
    return require_match(_REGION, value, f"an AWS region such as 'us-east-1'{_suggest_region(value)}")


def _suggest_region(value: str) -> str:
    """Return ``; did you mean 'us-east-1'`` for a text that is almost a region's name, or nothing."""
    parts = _REGION_PARTS.fullmatch(value.strip())
    if parts is None:
        return ""
    names = [f"{parts[1].lower()}-{direction}-{parts[3]}" for direction in _DIRECTIONS]
    return suggest_nearest(value.lower(), names, 0.85).removesuffix("?")


BucketName = Annotated[str, AfterValidator(require_bucket)]


class Destination(FileModel):
    """The settings of one type of destination. ``key_names`` says what its model calls the parts of an ``Access``."""

    key_names: ClassVar[KeyNames] = KeyNames()
    renamed_keys: ClassVar[Mapping[str, str]] = {}
    """Top-level keys that a lake.yaml with it does not have, since the destination has its own key for them."""

    upload_parallelism: int = Field(5, ge=1, le=10)
    """Parts of a file that one task uploads at the same time."""
    allow_insecure: bool = False
    """Accepts an endpoint without TLS (``http://``) on another machine than this one."""
    single_writer: bool = False
    """Your promise that one load runs at a time. A store without conditional writes needs it."""
    role_wait_seconds: float = Field(60.0, ge=0, le=600)
    """AWS refuses a role that was created a moment ago: the job asks again for so many seconds."""

    @model_validator(mode="after")
    def _credentials_are_whole(self) -> Self:
        names = self.find_key_names()
        if self.read_key(names.external_id) is not None and not self.read_key(names.role_arn):
            raise ValueError(f"{names.external_id!r} needs {names.role_arn!r} beside it")
        keys = names.access_key_id, names.secret_access_key
        if len([key for key in keys if self.read_key(key) is None]) == 1:
            raise ValueError(f"{keys[0]!r} and {keys[1]!r} are given both or not at all")
        return self

    def find_key_names(self) -> KeyNames:
        """Return ``key_names``, with the forms of the keys that this destination has."""
        return self.key_names

    def read_key(self, key: str) -> Any:
        """Return the value at ``key``, which may have dots: ``advanced.endpoint``."""
        return attrgetter(key)(self)

    def make_access(self, *, prefix: str = "", bucket: str | None = None) -> Access:
        """Make the access to the destination; ``bucket`` is given if the file has it inside another value."""
        names = self.find_key_names()
        endpoint = self.read_key(names.endpoint) or None
        if endpoint:
            self.require_tls(names.endpoint)
        return Access(
            bucket=bucket or self.read_key(names.bucket),
            region=self.read_key(names.region),
            prefix=prefix,
            endpoint=endpoint,
            role_arn=self.read_key(names.role_arn) or None,
            external_id=self.read_key(names.external_id),
            access_key_id=self.read_key(names.access_key_id),
            secret_access_key=self.read_key(names.secret_access_key),
            single_writer=self.single_writer,
            role_wait_seconds=self.role_wait_seconds,
            key_names=names,
        )

    def require_tls(self, key: str) -> None:
        """Raise ``TLS_REQUIRED`` for a URL at ``key`` that has no TLS and is neither on this machine nor allowed."""
        require_tls(self.read_key(key), ("destination", *key.split(".")), allow_insecure=self.allow_insecure)

    def find_written_secret(self) -> str | None:
        """Return the key of a secret that is written out in the file; None where there is none."""
        name = self.find_key_names().secret_access_key
        secret = self.read_key(name)
        return None if secret is None or secret.reference is not None else name
