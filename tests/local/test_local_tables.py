"""The Iceberg REST catalog of ``--local``, call by call, as the specification of REST catalogs has them."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from urllib.parse import urlencode

import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from lakewriter.local_server.local_tables import Call, LocalTables
from tests.support.narrow import need

KEYS = {"client_id": "id", "client_secret": "secret"}
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}


class Store:
    """Objects in memory; the properties are those of no server."""

    def __init__(self):
        self.objects = {}

    def read(self, location):
        return self.objects[location]

    def create(self, location, content):
        assert location not in self.objects
        self.objects[location] = content

    def delete(self, location):
        del self.objects[location]

    def list_properties(self):
        return {"s3.access-key-id": "id"}


class Client:
    """Sends calls with a token."""

    def __init__(self, folder, warehouse="acme-lake/production"):
        self.store = Store()
        self.tables = LocalTables(folder / "catalog.db", self.store, "id", "secret")
        answer = self.tables.answer(Call("POST", "/v1/oauth/tokens", body=urlencode(KEYS).encode()))
        self.token = need(answer[1])["access_token"]
        _, config = self("GET", "config", query=urlencode({"warehouse": warehouse}))
        self.prefix = need(config)["overrides"]["prefix"]

    def __call__(self, method, path, body=None, query="", **options):
        content = b"" if body is None else json.dumps(body).encode()
        call = Call(method, f"/v1/{path}", query, f"Bearer {self.token}", content, **options)
        return self.tables.answer(call)

    def within(self, method, path, body=None, **options):
        """A call in the warehouse."""
        return self(method, f"{self.prefix}/namespaces{path}", body, **options)

    def create(self, name="orders", **more):
        return self.within("POST", "/crm/tables", {"name": name, "schema": SCHEMA, **more})

    def commit(self, *updates, requirements=(), name="orders"):
        body = {"requirements": list(requirements), "updates": list(updates)}
        return self.within("POST", f"/crm/tables/{name}", body)


@pytest.fixture
def client(tmp_path):
    client = Client(tmp_path)
    assert client.within("POST", "", {"namespace": ["crm"]}) == (200, {"namespace": ["crm"], "properties": {}})
    return client


def kind(answer):
    return answer[0], answer[1]["error"]["type"]


def set_property(value):
    return {"action": "set-properties", "updates": {"note": value}}


def of_uuid(uuid):
    return {"type": "assert-table-uuid", "uuid": uuid}


def test_a_table_lies_below_its_warehouse_and_its_metadata_beside_its_data(client):
    status, made = client.create(properties={"format-version": "2"})
    location = made["metadata-location"]
    assert status == 200
    assert made["metadata"]["location"] == "s3://acme-lake/production/crm/orders"
    assert location.startswith("s3://acme-lake/production/crm/orders/metadata/00000-")
    assert location.endswith(".metadata.json")
    # What is in the bucket is what was answered.
    assert json.loads(client.store.objects[location]) == made["metadata"]
    assert client.within("GET", "/crm/tables/orders") == (200, made)
    assert kind(client.create()) == (409, "AlreadyExistsException")
    assert list(client.store.objects) == [location]


def test_a_commit_replaces_the_metadata_and_keeps_the_object_before(client):
    _, made = client.create()
    status, changed = client.commit(set_property("a"), requirements=[of_uuid(made["metadata"]["table-uuid"])])
    assert status == 200
    assert changed["metadata"]["properties"]["note"] == "a"
    assert changed["metadata-location"].rpartition("/")[2].startswith("00001-")
    (logged,) = changed["metadata"]["metadata-log"]
    assert logged["metadata-file"] == made["metadata-location"]
    assert set(client.store.objects) == {made["metadata-location"], changed["metadata-location"]}


REFUSED = [
    # requirements that the table does not meet
    [of_uuid("11111111-1111-4111-8111-111111111111")],
    [{"type": "assert-create"}],
    [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}],
    [{"type": "assert-current-schema-id", "current-schema-id": 3}],
]


@pytest.mark.parametrize("requirements", REFUSED, ids=lambda requirements: requirements[0]["type"])
def test_a_commit_whose_requirements_are_not_met_changes_nothing(client, requirements):
    _, made = client.create()
    assert kind(client.commit(set_property("a"), requirements=requirements)) == (409, "CommitFailedException")
    assert client.within("GET", "/crm/tables/orders") == (200, made)
    assert list(client.store.objects) == [made["metadata-location"]]


def test_of_commits_on_the_same_metadata_one_succeeds(client):
    """All have read the metadata before one of them replaces it: the others are not applied, and leave no object."""
    _, made = client.create()
    count, read = 4, client.store.read
    barrier = Barrier(count)

    def read_together(location):
        content = read(location)
        barrier.wait()
        return content

    client.store.read = read_together
    uuid = made["metadata"]["table-uuid"]
    with ThreadPoolExecutor(count) as pool:
        answers = list(
            pool.map(lambda n: client.commit(set_property(str(n)), requirements=[of_uuid(uuid)]), range(count))
        )
    client.store.read = read
    assert sorted(status for status, _ in answers) == [200, 409, 409, 409]
    (done,) = [answer for status, answer in answers if status == 200]
    assert client.within("GET", "/crm/tables/orders") == (200, done)
    assert set(client.store.objects) == {made["metadata-location"], done["metadata-location"]}


def test_of_creates_at_once_one_succeeds(client):
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.create(), range(4)))
    assert sorted(status for status, _ in answers) == [200, 409, 409, 409]
    assert len(client.store.objects) == 1


def test_a_staged_table_is_there_once_it_is_committed(client):
    status, staged = client.create(**{"stage-create": True})
    assert (status, "metadata-location" in staged, client.store.objects) == (200, False, {})
    assert client.within("HEAD", "/crm/tables/orders")[0] == 404
    metadata = staged["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    status, made = client.commit(*updates, requirements=[{"type": "assert-create"}])
    assert (status, made["metadata"]["table-uuid"]) == (200, metadata["table-uuid"])
    assert TableMetadataUtil.parse_obj(made["metadata"]).location == metadata["location"]
    assert kind(client.commit(*updates, requirements=[{"type": "assert-create"}])) == (409, "CommitFailedException")


def test_lists_and_drops(client):
    assert client.within("GET", "") == (200, {"namespaces": [["crm"]]})
    assert client.within("GET", "", query="parent=crm") == (200, {"namespaces": []})
    assert kind(client.within("POST", "", {"namespace": ["crm"]})) == (409, "AlreadyExistsException")
    client.create()
    assert client.within("GET", "/crm/tables") == (200, {"identifiers": [{"namespace": ["crm"], "name": "orders"}]})
    assert client.within("HEAD", "/crm/tables/orders") == (204, None)
    assert kind(client.within("DELETE", "/crm")) == (409, "NamespaceNotEmptyException")
    purge = client.within("DELETE", "/crm/tables/orders", query="purgeRequested=true")
    assert kind(purge) == (406, "UnsupportedOperationException")
    assert client.within("DELETE", "/crm/tables/orders", query="purgeRequested=false") == (204, None)
    assert kind(client.within("GET", "/crm/tables/orders")) == (404, "NoSuchTableException")
    assert kind(client.commit(set_property("a"))) == (404, "NoSuchTableException")
    assert client.within("DELETE", "/crm") == (204, None)
    assert kind(client.within("GET", "/crm")) == (404, "NoSuchNamespaceException")
    assert kind(client.create()) == (404, "NoSuchNamespaceException")
    # Dropping deletes no file.
    assert len(client.store.objects) == 1


def test_tables_outlive_the_process_and_are_another_warehouses_not(client, tmp_path):
    _, made = client.create()
    again = Client(tmp_path)
    again.store = client.store
    again.tables = LocalTables(tmp_path / "catalog.db", client.store, "id", "secret")
    assert again.within("GET", "/crm/tables/orders") == (200, made)
    other = Client(tmp_path, "acme-lake")
    assert other.within("GET", "") == (200, {"namespaces": []})


def test_the_keys_of_the_server_are_given_to_clients_that_ask_for_them(client):
    client.create()
    assert client.within("GET", "/crm/tables/orders", is_delegating=True)[1]["config"] == {"s3.access-key-id": "id"}
    assert client.within("GET", "/crm/tables/orders")[1]["config"] == {}


SIGN_INS = [
    # authorization, form, status
    ("", KEYS, 200),
    (f"Basic {base64.b64encode(b'id:secret').decode()}", {}, 200),
    (f"Basic {base64.b64encode(b'id:other').decode()}", KEYS, 401),
    ("", KEYS | {"client_secret": "other"}, 401),
    ("", {}, 401),
]


@pytest.mark.parametrize(("authorization", "form", "status"), SIGN_INS)
def test_signing_in(client, authorization, form, status):
    call = Call("POST", "/v1/oauth/tokens", authorization=authorization, body=urlencode(form).encode())
    assert client.tables.answer(call)[0] == status


WRONG = [
    # method, path, body, status
    ("GET", "v1/config", None, 400),
    ("GET", "v1/!!/namespaces", None, 404),
    ("GET", "v2/config", None, 404),
    ("PUT", "v1/{prefix}/namespaces", None, 404),
    ("POST", "v1/{prefix}/namespaces", {"namespace": ["a", "b"]}, 400),
    ("POST", "v1/{prefix}/namespaces/crm/tables", {"name": "orders"}, 400),
    ("POST", "v1/{prefix}/namespaces/crm/tables/orders", {"updates": [{"action": "fly"}]}, 400),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), WRONG)
def test_wrong_calls(client, method, path, body, status):
    client.create()
    content = b"" if body is None else json.dumps(body).encode()
    call = Call(method, f"/{path.format(prefix=client.prefix)}", "", f"Bearer {client.token}", content)
    answer = client.tables.answer(call)
    assert answer[0] == status
    assert answer[1]["error"]["code"] == status


def test_no_call_without_a_token(client):
    call = Call("GET", f"/v1/{client.prefix}/namespaces", authorization="Bearer other")
    assert kind(client.tables.answer(call)) == (401, "NotAuthorizedException")
