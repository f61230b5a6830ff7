"""References in templates, as a reviewer reads them."""

from typing import Any

import pytest

from infra.review.templates import Template, Templates

DESTINATION = Template(
    "lake-destination",
    True,
    {
        "Resources": {
            "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "acme-lake"}},
            "Logs": {"Type": "AWS::S3::Bucket"},
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"Path": "/lake/"}},
            "Key": {"Type": "AWS::KMS::Key"},
        },
        "Parameters": {
            "Bootstrap": {"Type": "String"},
            "Id": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/lake/id"},
        },
        "Outputs": {
            "BucketArn": {"Value": {"Fn::GetAtt": ["Bucket", "Arn"]}, "Export": {"Name": "lake:Bucket"}},
            "RoleArn": {"Value": {"Fn::GetAtt": ["Role", "Arn"]}},
        },
    },
)
PIPELINE = Template("lake-pipeline", False, {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
TEMPLATES = Templates((DESTINATION, PIPELINE), "123456789012", "eu-central-1")

# Intrinsic functions: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
TEXTS: list[tuple[Any, str]] = [
    ("data/*", "data/*"),
    (30, "30"),
    (True, "true"),
    ({"Ref": "AWS::Partition"}, "aws"),
    ({"Ref": "AWS::AccountId"}, "123456789012"),
    ({"Ref": "AWS::Region"}, "eu-central-1"),
    ({"Ref": "Bucket"}, "acme-lake"),
    ({"Ref": "Logs"}, "<Logs>"),
    ({"Ref": "Id"}, "<ssm:/lake/id>"),
    ({"Ref": "Bootstrap"}, "<parameter Bootstrap>"),
    ({"Fn::GetAtt": ["Bucket", "Arn"]}, "arn:aws:s3:::acme-lake"),
    ({"Fn::GetAtt": ["Role", "Arn"]}, "arn:aws:iam::123456789012:role/lake/<Role>"),
    ({"Fn::GetAtt": "Key.Arn"}, "<Key>"),
    ({"Fn::GetAtt": ["Role", "RoleId"]}, "<Role.RoleId>"),
    ({"Fn::Join": ["", [{"Fn::GetAtt": ["Bucket", "Arn"]}, "/data/*"]]}, "arn:aws:s3:::acme-lake/data/*"),
    ({"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}, "arn:aws:iam::123456789012:root"),
    ({"Fn::ImportValue": "lake:Bucket"}, "arn:aws:s3:::acme-lake"),
    ({"Fn::ImportValue": "other:Thing"}, "<other:Thing>"),
    (
        {"Fn::GetStackOutput": {"StackName": "lake-destination", "OutputName": "RoleArn"}},
        "arn:aws:iam::123456789012:role/lake/<Role>",
    ),
    ({"Fn::GetStackOutput": {"StackName": "other", "OutputName": "Arn"}}, "<other.Arn>"),
    ({"Fn::Select": [0, ["a"]]}, '<Fn::Select [0, ["a"]]>'),
]


@pytest.mark.parametrize(("value", "expected"), TEXTS)
def test_text(value: Any, expected: str) -> None:
    assert TEMPLATES.resolve(value, DESTINATION) == expected


@pytest.mark.parametrize(
    ("region", "partition"), [("us-east-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_partition(region: str, partition: str) -> None:
    assert Templates((), "123456789012", region).partition == partition
