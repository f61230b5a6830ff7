"""What the roles may do in a table bucket of Amazon S3 Tables, by the operations that they call there.

Which action an operation asks for is ``OPERATIONS`` of the policies, from AWS's page "Accessing tables using the Amazon
S3 Tables Iceberg REST endpoint", and what the service's own operations ask for is their name:
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3tables.html
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewriter.dialects.lake_yaml import Lake, load
from lakewriter.errors import SpecInvalidError
from lakewriter.policy.role_documents import Document, Who, make_documents
from lakewriter.policy.roles import list_roles
from lakewriter.policy.table_bucket import list_actions
from tests.infra.destination.test_table_bucket import ANALYSTS, ARN
from tests.infra.destination.test_table_bucket import lake as content
from tests.policy.lakes import ARNS, KEY
from tests.policy.test_decisions import KEY_POLICY
from tests.support.iam import Policies, Request, simulate
from tests.support.recording import known_calls

BUCKET_LEVEL = {"GetTableBucket", "ListNamespaces", "CreateNamespace", "GetTableBucketMaintenanceConfiguration"}
"""Actions without the condition key of a namespace, by the service's page."""
NAMESPACE_LEVEL = {"GetNamespace", "ListTables", "CreateTable", "DeleteNamespace"}
OURS, OTHERS = ("shop", "orders"), ("shop", "returns")
LOAD = [
    # a first load: the catalog, its namespace, the table, the service's upkeep, the files, the commit
    "getConfig", "loadTable", "loadNamespaceMetadata", "createNamespace", "createTable",
    "PutTableMaintenanceConfiguration", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload",
    "AbortMultipartUpload", "ListParts", "HeadObject", "GetObject", "PutObject", "updateTable",
    # lakewriter check
    "GetTableBucketMaintenanceConfiguration", "GetTableMaintenanceConfiguration", "tableExists",
]  # fmt: skip
READ = ["getConfig", "listNamespaces", "loadNamespaceMetadata", "listTables", "tableExists", "loadTable", "GetObject"]
NEVER = ["dropTable", "dropNamespace", "renameTable", "PutTableBucketPolicy", "PutTablePolicy", "DeleteTableBucket",
         "PutTableBucketMaintenanceConfiguration"]  # fmt: skip
WHO: list[tuple[Who, list[str]]] = [
    (Who.JOB, LOAD),
    (Who.LOADER, LOAD),
    (Who.READER, READ),
    # `lakewriter abandon` aborts what the load left.
    (Who.OPERATOR, ["getConfig", "loadTable", "tableExists", "GetObject", "HeadObject", "AbortMultipartUpload"]),
]


def loaded(folder: Path, deployment: dict[str, Any] | None = None, **top: Any) -> Lake:
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump(content(deployment) | top), "utf-8")
    return load(path)


def documents(folder: Path, who: Who, deployment: dict[str, Any] | None = None, **top: Any) -> dict[str, Document]:
    found = loaded(folder, deployment, **top)
    party = found.deployment.trust[0] if found.deployment.trust and who is Who.READER else None
    return make_documents(found.spec, found.deployment, who, ARNS, party)


def requests(operation: str, table: tuple[str, str], *, arn: str = ARN) -> Iterator[Request]:
    """What an operation asks IAM for."""
    namespace, name = table
    for action in list_actions([operation]):
        context: dict[str, str | list[str]] = {}
        if action in NAMESPACE_LEVEL:
            context = {"s3tables:namespace": namespace}
        elif "TableBucket" not in action and action not in BUCKET_LEVEL:
            context = {"s3tables:namespace": namespace, "s3tables:tableName": name}
        resource = f"{arn}/table/1a2b-3c" if len(context) == 2 else arn
        yield Request(f"s3tables:{action}", resource, context)


def decide(found: dict[str, Document], operations: list[str], table: tuple[str, str], **where: str) -> list[str]:
    """The operations of which every request is allowed."""
    rows = [(each, request) for each in operations for request in requests(each, table, **where)]
    decisions = simulate([request for _, request in rows], Policies(found))
    refused = {each for (each, _), decision in zip(rows, decisions, strict=True) if not decision.allowed}
    return [each for each in operations if each not in refused]


@pytest.mark.parametrize(("who", "operations"), WHO)
def test_each_role_calls_its_operations(tmp_path: Path, who: Who, operations: list[str]) -> None:
    found = documents(tmp_path, who)
    asked = set(list_actions(operations))
    rest = [each for each in dict.fromkeys([*LOAD, *READ, *NEVER]) if not asked.issuperset(list_actions([each]))]
    assert decide(found, operations, OURS) == operations
    assert {*NEVER} <= {*rest}
    assert decide(found, rest, OURS) == []
    # Nothing of another table, namespace or table bucket is read or changed.
    of_tables = [each for each in operations if each in {"updateTable", "GetObject", "UploadPart", "loadTable"}]
    if who is not Who.READER:
        assert decide(found, of_tables, OTHERS) == []
    assert decide(found, of_tables, ("elsewhere", "orders")) == []
    assert decide(found, operations, OURS, arn=f"{ARN}-2") == []


def test_a_load_may_call_what_it_was_seen_to_call(tmp_path: Path) -> None:
    calls = [call for call in known_calls() if call.action.startswith("s3tables:")]
    assert len(calls) >= 4
    decisions = simulate(
        [Request(call.action, call.resource, dict(call.context)) for call in calls],
        Policies(documents(tmp_path, Who.JOB)),
    )
    assert [call for call, decision in zip(calls, decisions, strict=True) if not decision.allowed] == []


def test_nothing_is_allowed_that_no_operation_asks_for(tmp_path: Path) -> None:
    for who, operations in WHO:
        statements = documents(tmp_path, who)["S3Tables"]["Statement"]
        allowed = {action for each in statements for action in each["Action"] if action.startswith("s3tables:")}
        assert allowed == {f"s3tables:{action}" for action in list_actions(operations)}


REACHES: list[tuple[list[str], dict[tuple[str, str], bool]]] = [
    # a reader's tables, and whether it reads one
    ([], {OURS: True, OTHERS: True, ("shop_crm", "leads"): True, ("other", "orders"): False}),
    (["shop.orders"], {OURS: True, OTHERS: False, ("shop_crm", "orders"): False}),
    (["shop_crm.*"], {OURS: False, ("shop_crm", "leads"): True, ("shop_crm", "new"): True}),
    (["shop.orders", "shop_crm.leads"], {OURS: True, ("shop", "leads"): False, ("shop_crm", "leads"): True}),
]


@pytest.mark.parametrize(("tables", "expected"), REACHES)
def test_a_reader_reads_the_tables_of_its_contract(
    tmp_path: Path, tables: list[str], expected: dict[tuple[str, str], bool]
) -> None:
    found = documents(tmp_path, Who.READER, {"trust": [ANALYSTS | {"tables": tables}]})
    assert {table: decide(found, ["GetObject"], table) != [] for table in expected} == expected
    catalog = f"{ARNS.glue('')}table/s3tablescatalog/acme-tables/shop"
    (federated,) = (each for each in found["S3Tables"]["Statement"] if each["Sid"] == "ReadFederatedTables")
    if tables == ["shop.orders"]:
        assert federated["Resource"][-1] == f"{catalog}/orders"


def test_the_key_is_used_by_s3_tables_too(tmp_path: Path) -> None:
    found = documents(tmp_path, Who.JOB, {"encryption": "SSE-KMS", "existing": {"kms_key_arn": KEY}})
    services = [f"{service}.us-east-1.amazonaws.com" for service in ("s3", "s3tables", "secretsmanager")]
    rows = [Request("kms:GenerateDataKey", KEY, {"kms:ViaService": service}) for service in services]
    decisions = simulate(rows, Policies(found, KEY_POLICY))
    assert [decision.allowed for decision in decisions] == [True, True, False]


def test_many_tables_are_named_by_their_namespaces(tmp_path: Path) -> None:
    read = {"format": "csv", "path": "s3://acme-landing/t.csv"}
    tables = [{"table": f"a_table_with_a_long_name_of_its_own_{number}", "read": read} for number in range(300)]
    found = documents(tmp_path, Who.JOB, tables=tables)
    assert decide(found, ["updateTable"], OTHERS) == ["updateTable"]
    assert decide(found, ["updateTable"], ("elsewhere", "orders")) == []


def test_a_party_that_writes_needs_folders(tmp_path: Path) -> None:
    party = ANALYSTS | {"access": "write"}
    found = loaded(tmp_path, {"trust": [party]})
    with pytest.raises(SpecInvalidError) as caught:
        list(list_roles(found.spec, found.deployment, ARNS))
    assert caught.value.problems == (
        "deployment.trust.0: the tables lie in a table bucket, where no party writes. Give 'paths', its folders in "
        "'acme-lake', or access: read or load.",
    )
    found = loaded(tmp_path, {"trust": [party | {"paths": ["crm"]}]})
    (role,) = (role for role in list_roles(found.spec, found.deployment, ARNS) if role.name == "analysts")
    assert list(role.documents) == ["S3"]
