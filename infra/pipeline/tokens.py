"""Render texts with CDK tokens as cdk-nag prints them."""

from typing import Any

from aws_cdk import Stack


def render_tokens(stack: Stack, text: str) -> str:
    """Render references in angle brackets, such as ``arn:aws:s3:::bucket-<AWS::AccountId>/*``."""
    return _flatten(stack.resolve(text))


def _flatten(value: Any) -> str:
    match value:
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Sub": str(text)}:
            return text.replace("${", "<").replace("}", ">")
        case {"Fn::Join": ["", [*parts]]}:
            return "".join(map(_flatten, parts))
    return str(value)
