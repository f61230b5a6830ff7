"""Decide what becomes of resources when their stack is deleted, or no longer has them."""

from aws_cdk import RemovalPolicy

from infra.settings import Settings


def choose_removal(settings: Settings) -> RemovalPolicy:
    """Keep data of a protected stage; what a failed first deployment has made goes, so that the next one can make it.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html,
    ``RetainExceptOnCreate``
    """
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if settings.protected else RemovalPolicy.DESTROY
