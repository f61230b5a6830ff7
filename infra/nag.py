"""Findings of cdk-nag's AwsSolutions rules that are meant, each with its reason."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """``rule`` as cdk-nag prints it without its pack, such as ``S1`` or ``IAM5[Resource::*]``; children are covered."""
    # Only with the pack's name in front does the report list the finding and its reason.
    acknowledgment = Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason)
    Validations.of(construct).acknowledge(acknowledgment)
