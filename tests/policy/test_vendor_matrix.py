"""A party's rights are those of its vendor's page, whatever file trusts it: each vendor in each dialect's file.

The pages are in ``lakewriter.dialects``: Supaflow's alone has Glue, on databases that its own prefix begins.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewriter.dialects.lake_yaml import Lake, load
from lakewriter.policy.role_documents import Who
from lakewriter.policy.roles import list_roles
from lakewriter.policy.s3_statements import WITHHELD
from tests.policy.lakes import ARNS, BUCKET, CATALOG, DATABASE, TABLE
from tests.support.iam import Policies, Request, simulate

READ = {"format": "parquet", "path": "s3://acme-landing/orders"}
TABLES = [{"table": "orders", "schema": "shop", "read": READ}]
SUPAFLOW = {"s3_bucket_name": "acme-lake", "bucket_region": "us-east-1", "s3_path_prefix": "data"}
AIRBYTE = {
    "s3_bucket_name": "acme-lake",
    "s3_bucket_path": "data",
    "s3_bucket_region": "us-east-1",
    "s3_path_format": "${NAMESPACE}/${STREAM_NAME}/",
    "format": {"format_type": "Parquet"},
}
LAKEWRITER = {"location": "s3://acme-lake/data", "region": "us-east-1"}
FILES: dict[str, tuple[dict[str, Any], str]] = {
    # the destination, and the database of its table; blank without Glue
    "supaflow-s3": ({"type": "supaflow-s3", **SUPAFLOW}, ""),
    "supaflow-s3-data-lake in Glue": (
        {"type": "supaflow-s3-data-lake", **SUPAFLOW, "update_aws_glue_catalog": True},
        "supaflow_shop",
    ),
    "supaflow-s3-data-lake in Iceberg": (
        {"type": "supaflow-s3-data-lake", **SUPAFLOW, "table_format": "ICEBERG"},
        "supaflow_shop",
    ),
    "airbyte-s3": ({"type": "airbyte-s3", **AIRBYTE}, ""),
    "heropixel-s3": ({"type": "heropixel-s3", **AIRBYTE}, ""),
    "lakewriter-s3 in Glue": ({"type": "lakewriter-s3", **LAKEWRITER, "catalog": "glue"}, "shop"),
}
ID = {"external_id": "acme-2026"}
PRINCIPAL = "arn:aws:iam::111122223333:role/A"
PARTIES: dict[str, dict[str, Any]] = {
    "supaflow": {"trust": [{"vendor": "supaflow", **ID}]},
    "airbyte-cloud": {"trust": [{"vendor": "airbyte-cloud", **ID}]},
    "heropixel-cloud": {"trust": [{"vendor": "heropixel-cloud", **ID}]},
    "estuary": {"iam_user": {"vendor": "estuary"}},
    "a principal": {"trust": [{"principal": PRINCIPAL, "name": "a", **ID}]},
    "a principal for supaflow": {"trust": [{"vendor": "supaflow", "principal": PRINCIPAL, **ID}]},
    "a machine": {"trust": [{"identity": {"ec2": "arn:aws:iam::123456789012:role/Host"}, "name": "a"}]},
    "a pod for airbyte-cloud": {"trust": [{"vendor": "airbyte-cloud", "identity": {"irsa": {
        "provider": "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/A1",
        "namespace": "airbyte", "service_account": "airbyte-admin"}}}]},
}  # fmt: skip
PAGES = {
    # the page that lists a party's rights: that of the vendor that it names, or that of the file's destination, if its
    # product also runs on machines of one's own
    "a principal": {"airbyte-s3": "airbyte-cloud", "heropixel-s3": "heropixel-cloud"},
    "a principal for supaflow": dict.fromkeys(FILES, "supaflow"),
    "a machine": {"airbyte-s3": "airbyte-cloud", "heropixel-s3": "heropixel-cloud"},
    "a pod for airbyte-cloud": dict.fromkeys(FILES, "airbyte-cloud"),
}
CONTRACTS: dict[str, dict[str, Any]] = {
    "shared": {},
    "paths": {"paths": ["/crm"]},
    "databases": {"paths": ["/crm"], "databases": ["crm_*"]},
}
ROWS = list(product(FILES, PARTIES, CONTRACTS))
COUNT = 2574
"""Decisions."""


def read_lake(folder: Path, file: str, party: str, contract: str) -> Lake:
    destination, _ = FILES[file]
    deployment = {
        key: [entry | CONTRACTS[contract] for entry in value] if key == "trust" else value | CONTRACTS[contract]
        for key, value in PARTIES[party].items()
    }
    path = folder / "lake.yaml"
    content = {"pipeline": "sales", "destination": destination, "tables": TABLES, "deployment": deployment}
    path.write_text(yaml.safe_dump(content), "utf-8")
    return load(path)


def list_page(lake: Lake, vendor: str, database: str) -> list[tuple[str, str]]:
    """What the vendor's page lists, on its own objects and on a database and a table."""
    policy = lake.spec.vendor_policies.get(vendor)
    if policy is None:
        return []
    of_bucket = {"s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"}
    objects = [action for each in policy.s3 for action in each.actions if action not in {*of_bucket, *WITHHELD}]
    of_catalog = {"glue:GetCatalog", "glue:GetCatalogs", "glue:GetCatalogImportStatus"}
    resets = {"glue:DeleteTable", "glue:BatchDeleteTable", "glue:DeleteDatabase"}
    glue = [action for each in policy.glue for action in each.actions if action not in resets]
    asked = [(action, f"{BUCKET}/{{root}}x/1.parquet") for action in objects]
    asked += [(action, CATALOG) for action in glue if action in of_catalog]
    return asked + [
        (action, f"{DATABASE}/{database}" if "Database" in action else f"{TABLE}/{database}/x")
        for action in glue
        if action not in of_catalog
    ]


CHANGES = ["glue:CreateDatabase", "glue:UpdateDatabase", "glue:CreateTable", "glue:UpdateTable"]
NEW = {"s3:ObjectCreationOperation": "true", "s3:if-none-match": "*"}


def list_expected(lake: Lake, file: str, party: str, contract: str) -> Iterator[tuple[str, str, bool]]:
    """Action, resource, and whether it is allowed."""
    database, shared = FILES[file][1], contract == "shared"
    page = PAGES[party].get(file, "") if party in PAGES else party
    reaches_prefix = page == "supaflow" and file.startswith("supaflow") and bool(database) and shared
    for action, resource in list_page(lake, page, "supaflow_other" if shared else "crm_a"):
        if action.startswith("s3:"):
            yield action, resource.format(root="data/" if shared else "crm/"), True
        else:
            yield action, resource, reaches_prefix or contract == "databases"
    if not page:
        root = "data/" if shared else "crm/"
        yield "s3:PutObjectAcl", f"{BUCKET}/{root}x/1.parquet", False
    for action in CHANGES:
        path = DATABASE if action.endswith("Database") else TABLE
        below = "" if action.endswith("Database") else "/x"
        yield action, f"{path}/supaflow_other{below}", reaches_prefix
        yield action, f"{path}/crm_a{below}", contract == "databases"
        if database and action != "glue:CreateDatabase":
            yield action, f"{path}/{database}{below and '/orders'}", False


def test_rights_follow_the_partys_vendor(tmp_path: Path) -> None:
    """Page by page, and the file's own databases with it; one process for the whole matrix."""
    requests: list[Request] = []
    policies: list[Policies] = []
    expected: list[tuple[str, bool]] = []
    for file, party, contract in ROWS:
        lake = read_lake(tmp_path, file, party, contract)
        (role,) = (each for each in list_roles(lake.spec, lake.deployment, ARNS) if each.who is Who.VENDOR)
        own = Policies(role.documents)
        for action, resource, allowed in list_expected(lake, file, party, contract):
            requests.append(Request(action, resource, NEW if action == "s3:PutObject" else {}))
            policies.append(own)
            expected.append((f"{party} in {file}, {contract}: {action} on {resource}", allowed))
    decisions = simulate(requests, policies)
    found = [(name, decision.allowed) for (name, _), decision in zip(expected, decisions, strict=True)]
    assert [row for row, wanted in zip(found, expected, strict=True) if row != wanted] == []
    assert (len(ROWS), len(expected)) == (144, COUNT)


def test_databases_are_named_as_glue_has_them(tmp_path: Path) -> None:
    path = tmp_path / "lake.yaml"
    trust = [{"vendor": "supaflow", **ID, "paths": ["/crm"], "databases": ["Crm-*"]}]
    content = {"pipeline": "a", "destination": FILES["airbyte-s3"][0], "tables": TABLES, "deployment": {"trust": trust}}
    path.write_text(yaml.safe_dump(content), "utf-8")
    with pytest.raises(Exception, match="expected a Glue database such as 'crm', or all that begin so"):
        load(path)
