"""What the vendor's form asks, under the form's labels, and what else somebody has to type somewhere."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from aws_cdk import CfnOutput
from constructs import Construct

from infra.destination.logical_ids import logical_id
from infra.destination.roles import Consumer
from infra.settings import Settings
from lakewriter.dialects.common.form import FormField, Provided
from lakewriter.naming import join_key
from lakewriter.spec.access import Access

_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9]")


class Outputs(Construct):
    """The form first. None is exported: another stack that took a value would forbid its change."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        job_role_arn: str,
        consumers: Sequence[Consumer],
        external_ids: Mapping[str, str],
        secret_arn: str | None,
    ) -> None:
        super().__init__(scope, id_)
        self._external_ids = external_ids
        form = next((each for each in consumers if each.name == settings.lake.principal), None)
        for label, value in form_values(settings.lake.form, self._provided(settings.spec.access, form, secret_arn)):
            self._output(label, value)
        for consumer in consumers:
            if consumer is not form:
                self._consumer(consumer, settings.spec.access)
        if secret_arn:
            self._output("Access Key Secret ARN", secret_arn)
        self._output("Job Role ARN", job_role_arn)

    def _consumer(self, consumer: Consumer, access: Access) -> None:
        external_id = self._external_ids[consumer.name]
        base = f"s3://{join_key(access.bucket, access.prefix)}/"
        if consumer.name == "snowflake-catalog":
            self._output("Snowflake Open Catalog: Default base location", base)
            self._output("Snowflake Open Catalog: S3 role ARN", consumer.role.role_arn)
            self._output("Snowflake Open Catalog: External ID", external_id)
        elif consumer.name == "snowflake-compute":
            self._output("Snowflake: STORAGE_BASE_URL", base)
            self._output("Snowflake: STORAGE_AWS_ROLE_ARN", consumer.role.role_arn)
            self._output("Snowflake: STORAGE_AWS_EXTERNAL_ID", external_id)
        else:
            whose = logical_id("", consumer.name, separator="-")
            self._output(f"IAM Role ARN ({consumer.name})", consumer.role.role_arn, key=f"IAMRoleARN{whose}")
            self._output(f"External ID ({consumer.name})", external_id, key=f"ExternalID{whose}")

    def _provided(self, access: Access, form: Consumer | None, secret_arn: str | None) -> dict[Provided, str]:
        """This deployment's answers; of a key, where it is."""
        answers: dict[Provided, str] = {}
        if form is not None:
            answers |= {Provided.ROLE_ARN: form.role.role_arn, Provided.EXTERNAL_ID: self._external_ids[form.name]}
        elif access.role_arn:
            answers[Provided.ROLE_ARN] = access.role_arn
        if secret_arn:
            for part in (Provided.ACCESS_KEY_ID, Provided.SECRET_ACCESS_KEY):
                answers[part] = f"In Secrets Manager: {part.value} of {secret_arn}"
        return answers

    def _output(self, label: str, value: str, *, key: str | None = None) -> None:
        """``key`` is the label without what CloudFormation does not take."""
        key = key or _NO_LETTER.sub("", label)
        CfnOutput(self, key, key=key, value=value, description=label)


def form_values(fields: Sequence[FormField], answers: Mapping[Provided, str]) -> Iterable[tuple[str, str]]:
    """Label and value of each field in the form's order; what has no answer is left out."""
    for field in fields:
        value = answers.get(field.value) if isinstance(field.value, Provided) else field.value
        if value:
            yield field.label, value
