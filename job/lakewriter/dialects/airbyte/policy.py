"""The policy document of Airbyte's set-up page, word for word; the page gives its statement no name.

https://docs.airbyte.com/integrations/destinations/s3
"""

from typing import Final

from lakewriter.spec.vendor_policy import Place, VendorPolicy, VendorStatement

POLICY: Final = VendorPolicy(
    s3=(
        VendorStatement(
            sid="AllowReadWriteInBucket",
            actions=(
                "s3:PutObject",
                "s3:GetObject",
                "s3:DeleteObject",
                "s3:PutObjectAcl",
                "s3:ListBucket",
                "s3:ListBucketMultipartUploads",
                "s3:AbortMultipartUpload",
                "s3:GetBucketLocation",
            ),
            targets=(Place.OBJECTS, Place.BUCKET),
        ),
    )
)
"""On the whole bucket, as the page has it."""
