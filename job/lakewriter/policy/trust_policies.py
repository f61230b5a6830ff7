"""Who may take a role: trust policies, each party in a statement of its own."""

from typing import NamedTuple

from lakewriter.policy.arns import Arns
from lakewriter.policy.statements import Document, Statement, document

SERVICE = "emr-serverless.amazonaws.com"


class Party(NamedTuple):
    """Somebody from outside: a principal's ARN, and the external id that goes with it and no other."""

    arn: str
    external_id: str


def job_trust(arns: Arns, *, conditions: bool = True) -> Document:
    """EMR Serverless, for applications of this account in this region; ``conditions`` off: for any account's."""
    statement: Statement = {
        "Sid": "TrustEmrServerless",
        "Effect": "Allow",
        "Principal": {"Service": SERVICE},
        "Action": "sts:AssumeRole",
    }
    if conditions:
        statement["Condition"] = {
            "StringEquals": {"aws:SourceAccount": arns.account},
            "ArnLike": {"aws:SourceArn": arns.applications()},
        }
    return document([statement])


def role_trust(*parties: Party) -> Document:
    """One statement for each: a list of principals with a list of ids would let each use the others' ids."""
    return document(_trusted(number, party) for number, party in enumerate(parties, start=1))


def closed_trust(arns: Arns) -> Document:
    """Nobody: a trust policy has to name a principal, and those it is meant for are not known yet."""
    return document(
        [
            {
                "Sid": "NobodyYet",
                "Effect": "Deny",
                "Principal": {"AWS": arns.root()},
                "Action": "sts:AssumeRole",
            }
        ]
    )


def _trusted(number: int, party: Party) -> Statement:
    return {
        "Sid": f"TrustParty{number}",
        "Effect": "Allow",
        "Principal": {"AWS": party.arn},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": party.external_id}},
    }
