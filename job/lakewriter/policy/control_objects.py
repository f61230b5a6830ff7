"""Deny everybody but the loads the control objects of every pipeline of the bucket, listings of them included."""

from collections.abc import Sequence
from typing import Final

from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.policy.arns import Arns, escape
from lakewriter.policy.statements import Conditions, Statement, deny
from lakewriter.spec.specification import Spec

_LISTINGS: Final = ("s3:ListBucket", "s3:ListBucketVersions")
"""All actions that have ``s3:prefix``. Uploads are listed by an action without it, and no control object is one."""
_NAMES: Final = [f"{CONTROL_DIRECTORY}*", f"*/{CONTROL_DIRECTORY}*"]


def list_control_objects(spec: Spec, arns: Arns) -> list[str]:
    """List the ARNs of control objects: this pipeline's, and those of others below any other prefix of the bucket."""
    own_folder, everywhere = escape(join_key(spec.access.prefix, CONTROL_DIRECTORY)), f"*/{CONTROL_DIRECTORY}"
    return [arns.objects(spec.access.bucket, f"{folder}/*") for folder in (own_folder, everywhere)]


def deny_control_objects(spec: Spec, arns: Arns) -> Statement:
    """Deny the control objects themselves."""
    return deny("KeepOutOfControlObjects", ["s3:*"], list_control_objects(spec, arns))


def hide_control_objects(spec: Spec, arns: Arns, starts: Sequence[str]) -> list[Statement]:
    """Deny the listings that would name control objects, to a role that may list what begins with ``starts``.

    A folder above them is listed with the delimiter ``/`` only, which names the folder and nothing in it. A request
    without a delimiter matches ``StringNotEquals`` too:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    """
    bucket = [arns.bucket(spec.access.bucket)]
    inside = deny("HideControlObjects", _LISTINGS, bucket, {"StringLike": {"s3:prefix": _NAMES}})
    above = _list_prefixes_above(join_key(spec.access.prefix, CONTROL_DIRECTORY), starts)
    if not above:
        return [inside]
    # Without a prefix the whole bucket is listed, which only a role for the whole bucket may do.
    equals = "StringEqualsIfExists" if "" in above else "StringEquals"
    recursive: Conditions = {equals: {"s3:prefix": above}, "StringNotEquals": {"s3:delimiter": "/"}}
    return [inside, deny("HideControlObjectsBelow", _LISTINGS, bucket, recursive)]


def _list_prefixes_above(folder: str, starts: Sequence[str]) -> list[str]:
    """List every text that the key of a control object begins with and that a listing under ``starts`` may ask for."""
    texts = (folder[:length] for length in range(len(folder)))
    return [
        escape(text)
        for text in texts
        if any(text.startswith(start) or (start.endswith("/") and text == start[:-1]) for start in starts)
    ]
