"""CloudFormation of the embedded AWS, taught the resource types and functions of our templates that moto 5.2.5 lacks.

All of this reaches into moto's inside, hence the exact pin of moto. What moto keeps nothing of is accepted and left
alone: bucket, queue and topic policies, alarms and subscriptions are asserted on the templates.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, Self
from unittest import mock

from moto.backends import get_backend
from moto.cloudformation import parsing
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import CloudFormationBackend
from moto.iam.models import ManagedPolicy
from moto.kms.models import Key
from moto.stepfunctions.models import StateMachine

from tests.support.call import ACCOUNT

REGION = "us-east-1"


class Resource:
    """A resource that CloudFormation keeps and no service hears of."""

    type: ClassVar[str]
    """Also what moto asks of a resource that it has."""
    name_property: ClassVar[str] = ""

    def __init__(self, name: str, properties: Mapping[str, Any]) -> None:
        self.physical_resource_id = name
        self.properties = properties
        self.attributes: dict[str, str] = {}
        self.create()

    def create(self) -> None:
        """Make it in its service."""

    def delete(self, _account: str, _region: str) -> None:
        """Take it away again."""

    def get_cfn_attribute(self, name: str) -> str:
        return self.attributes[name]

    def is_created(self) -> bool:
        return True

    @staticmethod
    def has_cfn_attr(_name: str) -> bool:
        return True

    @classmethod
    def create_from_cloudformation_json(cls, name: str, resource: Mapping[str, Any], *_: Any, **__: Any) -> Self:
        return cls(name, resource["Properties"])

    @classmethod
    def update_from_cloudformation_json(cls, *, original_resource: Self, **_: Any) -> Self:
        raise AssertionError(f"{cls.type} {original_resource.physical_resource_id}: no test deploys a change of it")


class BucketPolicy(Resource):
    """moto would hold everybody to its denials, whatever their conditions say."""

    type = "AWS::S3::BucketPolicy"


class QueuePolicy(Resource):
    type = "AWS::SQS::QueuePolicy"


class TopicPolicy(Resource):
    type = "AWS::SNS::TopicPolicy"


class Subscription(Resource):
    type = "AWS::SNS::Subscription"


class Alarm(Resource):
    type = "AWS::CloudWatch::Alarm"
    name_property = "AlarmName"

    def create(self) -> None:
        self.attributes["Arn"] = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{self.physical_resource_id}"

    @classmethod
    def update_from_cloudformation_json(cls, *, original_resource: Self, **given: Any) -> Self:
        """An alarm on an application's metrics names the application, which a deployment may have made anew."""
        original_resource.properties = given["cloudformation_json"]["Properties"]
        return original_resource


class Database(Resource):
    type = "AWS::Glue::Database"

    def create(self) -> None:
        wanted = self.properties["DatabaseInput"]
        self.physical_resource_id = wanted["Name"]
        _backend("glue").create_database(database_name=wanted["Name"], database_input=wanted)

    def delete(self, _account: str, _region: str) -> None:
        _backend("glue").delete_database(self.physical_resource_id)


class Application(Resource):
    """moto knows releases of the form ``emr-7.0.0`` only, keeps no architecture, and leaves out the rest of these."""

    type = "AWS::EMRServerless::Application"

    def create(self) -> None:
        made = _backend("emr-serverless").create_application(
            name=self.properties["Name"],
            release_label="emr-7.0.0",
            application_type=self.properties["Type"].upper(),
            client_token="",
            initial_capacity={},
            maximum_capacity=self._in_its_case("MaximumCapacity"),
            tags={tag["Key"]: tag["Value"] for tag in self.properties["Tags"]},
            auto_start_configuration=self._in_its_case("AutoStartConfiguration"),
            auto_stop_configuration=self._in_its_case("AutoStopConfiguration"),
            network_configuration=self._in_its_case("NetworkConfiguration") or None,
        )
        made.release_label = self.properties["ReleaseLabel"]
        self.physical_resource_id = made.id
        self.attributes |= {"ApplicationId": made.id, "Arn": made.arn}

    def _in_its_case(self, name: str) -> dict[str, Any]:
        """As the service spells the fields, with a small letter first."""
        return {key[0].lower() + key[1:]: value for key, value in self.properties.get(name, {}).items()}

    def delete(self, _account: str, _region: str) -> None:
        service = _backend("emr-serverless")
        service.stop_application(self.physical_resource_id)
        service.delete_application(self.physical_resource_id)


class ScheduleGroup(Resource):
    type = "AWS::Scheduler::ScheduleGroup"
    name_property = "Name"

    def create(self) -> None:
        made = _backend("scheduler").create_schedule_group(self.physical_resource_id, [])
        self.attributes["Arn"] = made.arn

    def delete(self, _account: str, _region: str) -> None:
        _backend("scheduler").delete_schedule_group(self.physical_resource_id)


class Schedule(Resource):
    type = "AWS::Scheduler::Schedule"
    name_property = "Name"

    def create(self) -> None:
        wanted = self.properties
        made = _backend("scheduler").create_schedule(
            description=wanted.get("Description"),
            end_date=wanted.get("EndDate"),
            flexible_time_window=wanted["FlexibleTimeWindow"],
            group_name=wanted["GroupName"],
            kms_key_arn=wanted.get("KmsKeyArn"),
            name=self.physical_resource_id,
            schedule_expression=wanted["ScheduleExpression"],
            schedule_expression_timezone=wanted["ScheduleExpressionTimezone"],
            start_date=wanted.get("StartDate"),
            state=wanted["State"],
            target=wanted["Target"],
            action_after_completion=None,
        )
        self.attributes["Arn"] = made.arn

    def delete(self, _account: str, _region: str) -> None:
        """moto deletes in any order, and a group goes with its schedules."""
        if self.properties["GroupName"] in _backend("scheduler").schedule_groups:
            _backend("scheduler").delete_schedule(self.properties["GroupName"], self.physical_resource_id)


class EncryptionKey(Key):
    """moto takes a key's policy and tags as KMS has them, not as CloudFormation has."""

    @classmethod
    def create_from_cloudformation_json(cls, name: str, resource: dict[str, Any], *where: Any, **others: Any) -> Key:
        properties = resource["Properties"]
        tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in properties.get("Tags", [])]
        given = properties | {"Tags": tags, "KeyPolicy": json.dumps(properties["KeyPolicy"])}
        return Key.create_from_cloudformation_json(name, resource | {"Properties": given}, *where, **others)


class Policy(ManagedPolicy):
    """moto drops what a deployment changes of a managed policy."""

    @classmethod
    def update_from_cloudformation_json(cls, *, original_resource: Any, cloudformation_json: Any, **_: Any) -> Any:
        document = json.dumps(cloudformation_json["Properties"]["PolicyDocument"])
        get_backend("iam")[ACCOUNT]["aws"].create_policy_version(original_resource.arn, document, set_as_default=True)
        return original_resource


def _delete_policy(policy: ManagedPolicy, _account: str, _region: str) -> None:
    """Do what CloudFormation does, and moto does not: without it no role of a deleted stack goes."""
    iam = get_backend("iam")[ACCOUNT]["aws"]
    for role in iam.get_roles():
        if policy.arn in role.managed_policies:
            iam.detach_role_policy(policy.arn, role.name)
    for user in iam.users.values():
        if policy.arn in user.managed_policies:
            iam.detach_user_policy(policy.arn, user.name)
    iam.delete_policy(policy.arn)


def _backend(service: str) -> Any:
    return get_backend(service)[ACCOUNT][REGION]


def _with_stack_outputs(clean: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``Fn::GetStackOutput``, by which a stack takes a value of another without an export that binds both."""

    def resolve(value: Any, resources: Any) -> Any:
        wanted = value.get("Fn::GetStackOutput") if isinstance(value, dict) else None
        if wanted is None:
            return clean(value, resources)
        stack = get_backend("cloudformation")[ACCOUNT][wanted["Region"]].get_stack(wanted["StackName"])
        return stack.output_map[wanted["OutputName"]].value

    return resolve


def _with_new_outputs(execute: Callable[..., None]) -> Callable[..., None]:
    """A stack that a change set made or changed has the outputs of the new template."""

    def execute_and_read(backend: CloudFormationBackend, change_set_name: str, stack_name: str | None = None) -> None:
        execute(backend, change_set_name, stack_name)
        made = backend.change_sets.values()
        change_set = next(each for each in made if change_set_name in (each.change_set_name, each.change_set_id))
        stack = backend.stacks[change_set.stack_id]
        stack._parse_template()
        stack.output_map = stack._create_output_map()

    return execute_and_read


def _with_protection(delete: Callable[[CloudFormationBackend, str], None]) -> Callable[..., None]:
    """A stack with termination protection stays."""

    def delete_stack(backend: CloudFormationBackend, name_or_stack_id: str) -> None:
        stack = backend.get_stack(name_or_stack_id)
        if stack.enable_termination_protection:
            message = f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
            raise ValidationError(name_or_stack_id, message=message)
        delete(backend, name_or_stack_id)

    return delete_stack


def _with_retention(delete: Callable[[parsing.ResourceMap], None]) -> Callable[[parsing.ResourceMap], None]:
    """A stack that is deleted leaves what has ``RetainExceptOnCreate``, as it does what has ``Retain``."""

    def delete_resources(resources: parsing.ResourceMap) -> None:
        for resource in resources._resource_json_map.values():
            if resource.get("DeletionPolicy") == "RetainExceptOnCreate":
                resource["DeletionPolicy"] = "Retain"
        delete(resources)

    return delete_resources


def _with_arn(attribute: Callable[[StateMachine, str], Any]) -> Callable[[StateMachine, str], Any]:
    """``Fn::GetAtt`` of a state machine's ``Arn``."""
    return lambda machine, name: machine.arn if name == "Arn" else attribute(machine, name)


@contextmanager
def our_templates() -> Iterator[None]:
    """Within, moto's CloudFormation takes our templates, the only account's in the one region."""
    types = {kind.type: kind for kind in Resource.__subclasses__()}
    types |= {Key.cloudformation_type(): EncryptionKey, ManagedPolicy.cloudformation_type(): Policy}
    names = {kind.type: kind.name_property for kind in Resource.__subclasses__()}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(parsing.get_model_map(), types))
        stack.enter_context(mock.patch.dict(parsing.get_name_type_map(), names))
        stack.enter_context(mock.patch.object(parsing, "clean_json", _with_stack_outputs(parsing.clean_json)))
        with_outputs = _with_new_outputs(CloudFormationBackend.execute_change_set)
        stack.enter_context(mock.patch.object(CloudFormationBackend, "execute_change_set", with_outputs))
        protected = _with_protection(CloudFormationBackend.delete_stack)
        stack.enter_context(mock.patch.object(CloudFormationBackend, "delete_stack", protected))
        retained = _with_retention(parsing.ResourceMap.delete)
        stack.enter_context(mock.patch.object(parsing.ResourceMap, "delete", retained))
        stack.enter_context(mock.patch.object(ManagedPolicy, "delete", _delete_policy, create=True))
        with_arn = _with_arn(StateMachine.get_cfn_attribute)
        stack.enter_context(mock.patch.object(StateMachine, "get_cfn_attribute", with_arn))
        stack.enter_context(mock.patch.object(StateMachine, "has_cfn_attr", return_value=True))
        yield


def resource(stack: str, logical_id: str) -> Any:
    """A deployed stack's resource, as moto or a class above has it."""
    return get_backend("cloudformation")[ACCOUNT][REGION].get_stack(stack).resource_map[logical_id]


def find_resource(stack: str, beginning: str) -> Any:
    """The one resource of a stack whose logical id begins so."""
    resources = get_backend("cloudformation")[ACCOUNT][REGION].get_stack(stack).resource_map
    [found] = [name for name in resources.resources if name.startswith(beginning)]
    return resources[found]


def unprotect(stack: str) -> None:
    """UpdateTerminationProtection, which moto has not."""
    get_backend("cloudformation")[ACCOUNT][REGION].get_stack(stack).enable_termination_protection = False
