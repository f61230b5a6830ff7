"""Add stack outputs: the values that people type into the vendor's form and other systems, under those labels."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from aws_cdk import CfnOutput
from constructs import Construct

from infra.destination.logical_ids import make_logical_id
from infra.destination.roles import Consumer, Roles
from infra.settings import Settings
from lakewriter.dialects.common.form import FormField, Provided
from lakewriter.naming import join_key
from lakewriter.policy.parties import find_reach
from lakewriter.spec.access import Access
from lakewriter.spec.specification import Spec

_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9]")


class Outputs(Construct):
    """The outputs, the vendor's form first. They have no export names, since an imported output cannot change."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: Settings,
        roles: Roles,
        external_ids: Mapping[str, tuple[str, ...]],
        secret_arn: str | None,
    ) -> None:
        super().__init__(scope, id_)
        self._external_ids = external_ids
        form = next((consumer for consumer in roles.consumers if consumer.name == settings.lake.principal), None)
        answers = self._collect_answers(settings.spec.access, form, secret_arn)
        for label, value in list_form_values(settings.lake.form, answers, folder=_find_folder(settings, form)):
            self._add_output(label, value)
        for consumer in roles.consumers:
            if consumer is not form or not consumer.assumes:
                self._add_consumer(consumer, settings.spec)
        if secret_arn:
            self._add_output("Access Key Secret ARN", secret_arn)
        self._add_output("Job Role ARN", roles.job.role_arn)
        if roles.optimizers:
            self._add_output("Optimizer Role ARN", roles.optimizers.role_arn)

    def _add_consumer(self, consumer: Consumer, spec: Spec) -> None:
        suffix = make_logical_id("", consumer.name, separator="-")
        if not consumer.assumes:
            self._add_output(f"IAM Role ARN ({consumer.name})", consumer.role.role_arn, key=f"IAMRoleARN{suffix}")
            return
        external_id = self._external_ids[consumer.name][0]
        base = f"s3://{join_key(spec.access.bucket, spec.base)}/"
        if consumer.name == "snowflake-catalog":
            self._add_output("Snowflake Open Catalog: Default base location", base)
            self._add_output("Snowflake Open Catalog: S3 role ARN", consumer.role.role_arn)
            self._add_output("Snowflake Open Catalog: External ID", external_id)
        elif consumer.name == "snowflake-compute":
            self._add_output("Snowflake: STORAGE_BASE_URL", base)
            self._add_output("Snowflake: STORAGE_AWS_ROLE_ARN", consumer.role.role_arn)
            self._add_output("Snowflake: STORAGE_AWS_EXTERNAL_ID", external_id)
        else:
            self._add_output(f"IAM Role ARN ({consumer.name})", consumer.role.role_arn, key=f"IAMRoleARN{suffix}")
            self._add_output(f"External ID ({consumer.name})", external_id, key=f"ExternalID{suffix}")

    def _collect_answers(self, access: Access, form: Consumer | None, secret_arn: str | None) -> dict[Provided, str]:
        """Collect this deployment's values for the form; for an access key, the secret that holds it.

        A form that a machine's own role stands in for has neither a role nor an external id."""
        answers: dict[Provided, str] = {}
        if form is not None and form.assumes:
            answers |= {Provided.ROLE_ARN: form.role.role_arn, Provided.EXTERNAL_ID: self._external_ids[form.name][0]}
        elif form is None and access.role_arn:
            answers[Provided.ROLE_ARN] = access.role_arn
        if secret_arn:
            for part in (Provided.ACCESS_KEY_ID, Provided.SECRET_ACCESS_KEY):
                answers[part] = f"In Secrets Manager: {part.value} of {secret_arn}"
        return answers

    def _add_output(self, label: str, value: str, *, key: str | None = None) -> None:
        """Add an output; ``key`` defaults to the label's letters and digits, as CloudFormation requires."""
        key = key or _NO_LETTER.sub("", label)
        CfnOutput(self, key, key=key, value=value, description=label)


def list_form_values(
    fields: Sequence[FormField], answers: Mapping[Provided, str], *, folder: str | None = None
) -> Iterable[tuple[str, str]]:
    """List label and value of each field in the form's order, without fields that have no value.

    ``folder`` is the party's own, in place of the destination's prefix.
    """
    for field in fields:
        value = answers.get(field.value) if isinstance(field.value, Provided) else field.value
        if field.is_prefix and folder:
            value = folder
        if value:
            yield field.label, value


def _find_folder(settings: Settings, form: Consumer | None) -> str | None:
    """Find the one folder that the contract of the form's party is for; None if its form takes the file's prefix."""
    name = form.name if form else "iam_user"
    party = dict(settings.deployment.parties).get(name)
    if party is None or len(party.paths) != 1:
        return None
    (start,) = find_reach(settings.spec, party).starts
    return start.rstrip("/")
