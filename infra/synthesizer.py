"""Set the CDK's flags, and the bucket of assets, the bootstrap's or one of the owner's."""

from aws_cdk import CliCredentialsStackSynthesizer, DefaultStackSynthesizer, IReusableStackSynthesizer, Stack

from infra.settings import Settings, read_defaults


def make_artifact_prefix(settings: Settings) -> str:
    """Make the folder of the stage's artifacts in the bucket of assets."""
    return f"{settings.name}/"


def make_synthesizer(settings: Settings, *, shared: bool = False) -> IReusableStackSynthesizer:
    """Make a stack's synthesizer; ``shared`` assets lie in no folder of the stage, as CDK's own do in its bootstrap.

    With ``artifact_bucket`` the deployer uploads with its own credentials, and the template asks for no bootstrap:
    it has neither the parameter ``BootstrapVersion`` nor its rule.
    """
    deployment, prefix = settings.deployment, make_artifact_prefix(settings)
    if deployment.artifact_bucket:
        return CliCredentialsStackSynthesizer(file_assets_bucket_name=deployment.artifact_bucket, bucket_prefix=prefix)
    return DefaultStackSynthesizer(qualifier=deployment.bootstrap_qualifier, bucket_prefix=None if shared else prefix)


def set_flags(stack: Stack) -> None:
    """Set the CDK's feature flags on a stack that has no children yet: an app of somebody's own may have others."""
    for key, value in read_defaults().items():
        if key.startswith("@"):
            stack.node.set_context(key, value)
