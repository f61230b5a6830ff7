"""Texts with tokens, as cdk-nag prints them."""

from typing import Any

from aws_cdk import Stack


def shown(stack: Stack, text: str) -> str:
    """References in angle brackets, such as ``<Application.Arn>/jobruns/*``."""
    return _flat(stack.resolve(text))


def _flat(value: Any) -> str:
    match value:
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": ["", [*parts]]}:
            return "".join(map(_flat, parts))
    return str(value)
