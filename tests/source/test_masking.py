"""Secrets in what a connector says: none of them is left, in whatever form, and other words are."""

import base64
import json
import sys
from urllib.parse import quote, quote_plus

import pytest

from lakewriter.source.messages.connector_secrets import find_secrets, is_secret_name, make_environment
from lakewriter.source.messages.masking import Mask
from lakewriter.spec.stream import MessageSource

SECRET = 'p@ss "wörd"/+1\\x'
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
FORMS = [
    SECRET,
    json.dumps(SECRET)[1:-1],
    json.dumps(SECRET, ensure_ascii=False)[1:-1],
    json.dumps(json.dumps({"password": SECRET})),
    repr(SECRET)[1:-1],
    quote(SECRET),
    quote(SECRET, safe=""),
    quote(SECRET, safe="").lower(),
    quote_plus(SECRET),
    base64.b64encode(SECRET.encode()).decode(),
    base64.urlsafe_b64encode(SECRET.encode()).decode(),
    base64.b64encode(f"user:{SECRET}".encode()).decode(),
    base64.b64encode(f"a user:{SECRET} and more".encode()).decode(),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("around", ["%s", "failed: '%s'.", "postgresql://u:%s@host/db", "x%sy"])
def test_form(form, around):
    text = Mask([SECRET]).mask(around % form)
    assert "***" in text
    for piece in (
        SECRET,
        "wörd",
        "w\\u00f6rd",
        "w%C3%B6rd",
        "w%c3%b6rd",
        base64.b64encode(SECRET.encode()).decode()[4:16],
    ):
        assert piece not in text


TEXTS = [
    # secrets, a text, the text as it is shown
    (["abc"], "abc abcd (abc) x_abc", "*** abcd (***) x_abc"),
    (["ab"], "ab", "ab"),
    (["true"], "it is true", "it is true"),
    (["hunter2"], "hunter2: hunter22", "***: hunter22"),
    (["longer than that", "longer than"], "longer than that, longer than", "***, ***"),
    ([" padded-value "], "padded-value", "***"),
    ([PEM], "got MIIEvQIBADANBgkq of it", "got *** of it"),
    ([PEM], PEM, "***"),
    (["abc"], base64.b64encode(b"abc").decode(), "***"),
    ([], "nothing", "nothing"),
]


@pytest.mark.parametrize(("secrets", "text", "expected"), TEXTS)
def test_text(secrets, text, expected):
    assert Mask(secrets).mask(text) == expected


CUT = [
    ("the key is very-se", "the key is ***"),
    ("'the key is very-secret'", "'the key is ***'"),
    ("'the key is very-sec'", "'the key is ***'"),
    ("the key is ver", "the key is ver"),
]


@pytest.mark.parametrize(("text", "expected"), CUT)
def test_text_that_was_cut_off_in_a_secret(text, expected):
    assert Mask(["very-secret"]).mask_cut(text) == expected


CONFIG = {
    "host": "db.example.com", "port": 5432, "username": "reader", "password": "hunter2-long",
    "credentials": {"auth_type": "OAuth2.0", "client_secret": "c-secret", "refresh_token": "r-token"},
    "api_keys": ["first-key", "second-key"], "tunnel": {"ssh_key": PEM},
    "service_account_credentials": json.dumps({"type": "service_account", "private_key": PEM}),
    "uri": "mongodb://u:p%40ss-in-url@host/db", "start_date": "2024-01-01", "pin": 123456,
}  # fmt: skip
SECRETS = {
    "hunter2-long", "c-secret", "r-token", "first-key", "second-key", PEM, "p%40ss-in-url", "p@ss-in-url", "123456",
    CONFIG["service_account_credentials"],
}  # fmt: skip


@pytest.mark.parametrize("words", [["--config", "c.json"], ["--config=c.json"], ["-v", "c.json:/secrets/c.json:ro"]])
def test_secrets_of_a_configuration(tmp_path, words):
    (tmp_path / "c.json").write_text(json.dumps(CONFIG), "utf-8")
    source = MessageSource(command=("source", *words), folder=str(tmp_path))
    assert set(find_secrets(source, {})) == SECRETS


def test_secrets_of_arguments_and_environment(tmp_path):
    command = (
        "source",
        "--api-key",
        "in-argument",
        "--token=in-option",
        "-e",
        "DB_PASSWORD=in-variable",
        "--limit",
        "5",
    )
    environment = {"PGPASSWORD": "of-postgres", "PATH": "/bin", "HTTPS_PROXY": "http://me:of-proxy@proxy:80"}
    found = set(find_secrets(MessageSource(command=command, folder=str(tmp_path)), environment))
    assert found == {"in-argument", "in-option", "in-variable", "of-postgres", "of-proxy"}


SPEC = """
import json, sys
assert sys.argv[1:] == ["spec"]
one = {"properties": {"handle": {"type": "string", "airbyte_secret": True}, "plain": {"type": "string"}}}
schema = {
    "properties": {"way": {"oneOf": [one]}, "sole": {"oneOf": one}, "whole": {"type": "object", "airbyte_secret": True}}
}
print("starting")
print(json.dumps({"type": "SPEC", "spec": {"connectionSpecification": schema}}))
"""


def test_secrets_that_the_specification_marks(tmp_path):
    (tmp_path / "source.py").write_text(SPEC, "utf-8")
    one = {"handle": "marked", "plain": "shown"}
    content = {"way": one, "sole": {"handle": "also-marked"}, "whole": {"a": {"b": "inside"}}, "other": "shown"}
    (tmp_path / "c.json").write_text(json.dumps(content), "utf-8")
    command = (sys.executable, "source.py", "read", "--config", "c.json")
    found = find_secrets(MessageSource(command=command, folder=str(tmp_path)), {})
    assert set(found) == {"marked", "also-marked", "inside"}


NAMES = [
    ("password", True), ("db_passwd", True), ("apiKey", True), ("AWS_SECRET_ACCESS_KEY", True), ("access_key_id", True),
    ("refresh_token", True), ("privateKey", True), ("connection_string", True), ("--api-key", True), ("key", True),
    ("primary_key", False), ("host", False), ("username", False), ("path", False), ("author", False),
    ("keyspace", False), ("pinned", False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_name(name, expected):
    assert is_secret_name(name) is expected


def test_environment():
    given = {"PATH": "/bin", "LC_ALL": "C", "https_proxy": "p", "AWS_SECRET_ACCESS_KEY": "s", "MINE": "m", "OTHER": "o"}
    assert make_environment(["MINE", "GONE"], given) == {"PATH": "/bin", "LC_ALL": "C", "https_proxy": "p", "MINE": "m"}
