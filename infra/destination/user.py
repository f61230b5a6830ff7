"""Make an IAM user with an access key, for a vendor that cannot assume a role."""

from typing import Final

from aws_cdk import RemovalPolicy, SecretValue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.destination.logical_ids import pin
from infra.destination.policies import Declared, Permissions
from infra.nag import acknowledge
from infra.settings import Settings
from lakewriter.policy.role_documents import Who

LOGICAL_ID: Final = "VendorUser"
ACCESS_KEY_LOGICAL_ID: Final = "VendorUserAccessKey"
SECRET_LOGICAL_ID: Final = "VendorUserKey"


class KeyedUser(Construct):
    """The user; only ``secret`` holds its key, as JSON with ``access_key_id`` and ``secret_access_key``."""

    def __init__(
        self, scope: Construct, id_: str, *, settings: Settings, declared: Declared, key: kms.IKey | None
    ) -> None:
        super().__init__(scope, id_)
        deployment = settings.deployment
        self.who: Who = declared.role.who
        # A key that is kept when it is replaced would stay valid.
        removal = RemovalPolicy.DESTROY
        self.user: iam.User = iam.User(self, "User", path=deployment.role_path)
        self.user.apply_removal_policy(removal)
        pin(self.user, LOGICAL_ID)
        access_key = iam.AccessKey(self, "AccessKey", user=self.user, serial=deployment.iam_user_key_serial)
        access_key.apply_removal_policy(removal)
        pin(access_key, ACCESS_KEY_LOGICAL_ID)
        self.secret: secretsmanager.Secret = secretsmanager.Secret(
            self,
            "Secret",
            description="An access key for the destination's vendor",
            encryption_key=key,
            secret_object_value={
                "access_key_id": SecretValue.resource_attribute(access_key.access_key_id),
                "secret_access_key": access_key.secret_access_key,
            },
            removal_policy=removal,
        )
        pin(self.secret, SECRET_LOGICAL_ID)
        acknowledge(
            self.secret,
            "SMG4",
            "A vendor's form holds this key too: it is changed by hand, by raising deployment.iam_user_key_serial.",
        )
        Permissions(self.user, "Permissions", declared=declared, path=deployment.role_path, identity=self.user)
