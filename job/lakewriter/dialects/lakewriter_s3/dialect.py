"""``lakewriter-s3``: S3 for people without a vendor."""

from typing import Any, Final

from lakewriter.dialects.common.dialect import Dialect
from lakewriter.dialects.lakewriter_s3.settings import LakewriterS3
from lakewriter.dialects.lakewriter_s3.translate import adjust_limits, make_form_fields, translate


def _begin_destination(kind: str, bucket: str, region: str) -> dict[str, Any]:
    return {"type": kind, "location": f"s3://{bucket}/lake", "region": region}


DIALECT: Final = Dialect[LakewriterS3](
    types={"lakewriter-s3": LakewriterS3},
    translate=translate,
    form_fields=make_form_fields,
    limits=adjust_limits,
    first_keys=_begin_destination,
)
