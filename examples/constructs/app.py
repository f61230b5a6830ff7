"""Deploy a lake.yaml from a CDK app of one's own: install the extra infra, then cdk deploy --all.

LAKEWRITER_BUNDLE is the folder that scripts/bundle of the same release has filled.
"""

import os
from pathlib import Path

import aws_cdk as cdk
from lakewriter_infra import LakewriterDestination, LakewriterPipeline

app = cdk.App()
destination = LakewriterDestination(
    app,
    lake=Path(__file__).parents[1] / "lakewriter-s3.yaml",
    stage="prod",
    bundle=os.environ["LAKEWRITER_BUNDLE"],
)
pipeline = LakewriterPipeline(app, destination=destination)

# Beside it, what is the app's own: whoever analyses the lake may read it.
analytics = cdk.Stack(app, "Analytics")
reader = cdk.aws_iam.Role(analytics, "Reader", assumed_by=cdk.aws_iam.ServicePrincipal("athena.amazonaws.com"))
reader.add_to_policy(
    cdk.aws_iam.PolicyStatement(actions=["s3:GetObject"], resources=[destination.bucket.arn_for_objects("*")])
)

destination.write_review(app.synth().directory)
