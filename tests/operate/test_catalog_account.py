"""Tables in another account's Data Catalog: every call of Glue's names it, whoever makes the call."""

import json

import pytest
import yaml

from lakewriter.aws import Clients, find_account
from lakewriter.commit.data_store import reuse_clients
from lakewriter.doctor.iceberg_access import IcebergProbes
from lakewriter.operate.verification import verify_all
from lakewriter.spec.access import Access
from tests.load.lakes import BUCKET
from tests.operate.shop import BY_DAY, ICEBERG

OTHER = "999999999999"


def list_calls(shop, since=0):
    """The operation and the catalog of each call of Glue's, but for the test's own."""
    calls = [call for call, _ in shop.aws.history[since:] if call.service == "glue"]
    return {(call.action.removeprefix("glue:"), call.document.get("CatalogId")) for call in calls}


def central(shop, settings, **more):
    made = shop(settings, **more)
    content = yaml.safe_load(made.lake.file.read_text("utf-8"))
    made.lake.file.write_text(yaml.safe_dump(content | {"catalog_account": OTHER}), "utf-8")
    return made


WRITES = [
    # destination; what a load calls
    (BY_DAY, {"GetDatabase", "CreateDatabase", "GetTable", "CreateTable", "GetPartition", "BatchCreatePartition"}),
    (ICEBERG, {"GetDatabase", "CreateDatabase", "GetTable", "CreateTable", "UpdateTable"}),
]


@pytest.mark.parametrize(("settings", "calls"), WRITES)
def test_loads_undos_and_comparisons(shop, settings, calls):
    shop = central(shop, settings, cursor="id")
    shop.load("a", "b")
    assert calls <= {name for name, _ in list_calls(shop)}
    shop.undo("b").run()
    assert [each.differences for each in verify_all(shop.pipeline.controls, shop.pipeline.clients)] == [(), (), ()]
    assert {account for _, account in list_calls(shop)} == {OTHER}


def test_without_the_key_no_catalog_is_named(shop):
    shop = shop(BY_DAY)
    shop.load("a")
    assert {account for _, account in list_calls(shop)} == {None}


@pytest.mark.parametrize("settings", [{}, ICEBERG])
def test_whoever_recovers_a_load_publishes_it_there(shop, settings):
    """No record of a load names the account: releases before this one would refuse the record."""
    shop = central(shop, settings)
    shop.load("a")

    def refuse(call, proceed):
        return call.denied() if call.action in ("glue:BatchCreatePartition", "glue:UpdateTable") else proceed(call)

    shop.aws.interceptors.append(refuse)
    assert shop.try_load("b").status == "failed"
    shop.aws.interceptors.remove(refuse)
    intents = [body for key, body in shop.aws.objects(BUCKET).items() if "/tables/" in key and "/loads/" in key]
    assert len(intents) == 2
    assert [body for body in intents if OTHER.encode() in body or "catalog_account" in json.loads(body)["access"]] == []
    since = len(shop.aws.history)
    shop.load("c")
    assert {account for _, account in list_calls(shop, since)} == {OTHER}


def test_clients_of_another_role_name_todays_catalog():
    today = Access(bucket=BUCKET, region="us-east-1", catalog_account=OTHER)
    role = "arn:aws:iam::123456789012:role/Earlier"
    of_record = Access(bucket=BUCKET, region="us-east-1", role_arn=role)
    assert reuse_clients(Clients(today))(of_record).access.catalog_account == OTHER


def test_the_check_asks_that_catalog(shop):
    shop = central(shop, ICEBERG)
    clients = Clients(shop.lake.spec.access)
    found = list(IcebergProbes(shop.lake.spec, clients, "credentials").check_glue())
    assert [each.status for each in found] == ["ok"]
    assert list_calls(shop) == {("GetCatalog", OTHER)}
    # No STS either, which knows of the caller's account alone.
    assert [call.action for call, _ in shop.aws.history if call.service == "sts"] == []


def test_lineage_names_that_account(shop):
    assert find_account(central(shop, {}).lake.spec.access) == OTHER
