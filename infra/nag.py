"""Acknowledge intended findings of cdk-nag's AwsSolutions rules, each with its reason."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Acknowledge ``rule`` for a construct and its children; it is named as cdk-nag prints it without the pack, such as
    ``S1`` or ``IAM5[Resource::*]``."""
    # Only with the pack's name in front does the report list the finding and its reason.
    acknowledgment = Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason)
    Validations.of(construct).acknowledge(acknowledgment)
