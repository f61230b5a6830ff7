"""Find the secrets of a connector: in the files that it is given, in its arguments and in its environment."""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from lakewriter.aws.credentials import list_resolved
from lakewriter.source.messages.masking import Mask
from lakewriter.spec.stream import MessageSource

_MOST_BYTES: Final = 4 * 1024 * 1024
"""The limit for the size of a configuration file."""
_SPEC_SECONDS: Final = 60.0
_NO_LETTERS: Final = re.compile(r"[^a-z0-9]")
_SECRET_NAMES: Final = re.compile(
    r"passw|passphrase|passcode|pwd|secret|token|apikey|accesskey|privatekey|sshkey|signingkey|encryptionkey|accountkey|"
    r"credential|authorization|bearer|connectionstring|dsn$|sas$|signature|^auth$|^pass$|^key$|^pat$|^pin$"
)
_USER_INFO: Final = re.compile(r"://[^/@\s:]*:(?P<password>[^@\s]+)@")
"""The name and password of a URL."""

_OTHERS: Final = frozenset({"--state", "--catalog"})
"""Options whose files hold no configuration."""

Keys = tuple[str, ...]
"""The keys that lead to a value of a configuration."""


def find_secrets(source: MessageSource, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets that the connector is given.

    These are values of its files that its specification marks as ``airbyte_secret`` or whose names are those of
    secrets, passwords in URLs, and the same in its arguments and its environment.
    """
    marked = _read_marked(source, environment)
    for content in _read_files(source):
        yield from _list_secrets(content, (), marked)
    yield from _list_in_arguments(source.command)
    for name, value in environment.items():
        if is_secret_name(name):
            yield value
        yield from _list_in_url(value)


PASSED_ON: Final = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP", "LD_LIBRARY_PATH",
    "PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED", "PYTHONUTF8", "VIRTUAL_ENV", "JAVA_HOME", "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "DOCKER_HOST", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SYSTEMROOT",
})  # fmt: skip
"""The variables that a connector always gets: a program needs them to start, and to reach its network."""


def make_environment(names: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a connector gets: what any program needs, and what ``names`` lists."""
    return {
        name: value
        for name, value in environment.items()
        if name in names or name.upper() in PASSED_ON or name.startswith("LC_")
    }


class ConnectorMask:
    """A mask of a connector's secrets in its messages. Secrets are searched for once there is a text to mask."""

    def __init__(self, source: MessageSource, environment: Mapping[str, str]) -> None:
        self._source, self._environment = source, environment

    @cached_property
    def of_texts(self) -> Mask:
        """The mask of whole texts and of texts that were cut off."""
        return Mask((*find_secrets(self._source, self._environment), *list_resolved()))


def is_secret_name(name: str) -> bool:
    """Return True if the name of a key, an option or a variable is that of a secret."""
    return _SECRET_NAMES.search(_NO_LETTERS.sub("", name.lower())) is not None


def _read_files(source: MessageSource) -> Iterator[Any]:
    """Yield the JSON files among the arguments, except for the catalog and the state."""
    words = list(source.command)
    for before, word in zip(["", *words], words, strict=False):
        if before in _OTHERS:
            continue
        # As "--config=FILE", and as "FILE:/config.json" of a container.
        for name in dict.fromkeys((word, word.partition("=")[2], word.partition(":")[0])):
            content = _read_json(Path(source.folder, name)) if name else None
            if isinstance(content, dict | list):
                yield content


def _read_json(path: Path) -> Any:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _list_secrets(value: Any, path: Keys, marked: frozenset[Keys]) -> Iterator[str]:
    """Yield the leaves that are secrets. Elements of a list have the list's key."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _list_secrets(member, (*path, str(name)), marked)
    elif isinstance(value, list):
        for item in value:
            yield from _list_secrets(item, path, marked)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        is_marked = any(path[: len(keys)] == keys for keys in marked)
        if is_marked or (path and is_secret_name(path[-1])):
            yield str(value)
            yield from _list_inside(str(value))
        if isinstance(value, str):
            yield from _list_in_url(value)


def _list_inside(text: str) -> Iterator[str]:
    """Yield the secrets of a document that is a secret itself, as the key of a service account is."""
    if not text.lstrip().startswith("{"):
        return
    try:
        yield from _list_secrets(json.loads(text), (), frozenset())
    except (ValueError, RecursionError):
        return


def _list_in_url(text: str) -> Iterator[str]:
    for match in _USER_INFO.finditer(text):
        yield match["password"]
        yield unquote(match["password"])


def _list_in_arguments(words: Sequence[str]) -> Iterator[str]:
    for before, word in zip(["", *words], words, strict=False):
        name, _, value = word.partition("=")
        if value and is_secret_name(name):
            yield value
        elif before.startswith("-") and "=" not in before and is_secret_name(before) and not word.startswith("-"):
            yield word
        yield from _list_in_url(word)


def _read_marked(source: MessageSource, environment: Mapping[str, str]) -> frozenset[Keys]:
    """Ask the connector which keys of its configuration are secrets; return none if it does not answer."""
    words = list(source.command)
    if "read" not in words:
        return frozenset()
    try:
        output = subprocess.run(
            [*words[: words.index("read")], "spec"],
            cwd=source.folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SPEC_SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    return frozenset(path for schema in _parse_specification(output) for path in _list_marked(schema, ()))


def _parse_specification(output: bytes) -> Iterator[Any]:
    for line in output.splitlines():
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict) and message.get("type") == "SPEC" and isinstance(message.get("spec"), dict):
            yield message["spec"].get("connectionSpecification")


def _list_marked(schema: Any, path: Keys) -> Iterator[Keys]:
    if not isinstance(schema, dict):
        return
    if schema.get("airbyte_secret") is True and path:
        yield path
    for name, member in _get_object(schema, "properties").items():
        yield from _list_marked(member, (*path, name))
    parts: Iterable[Any] = [schema.get("items")]
    for key in ("oneOf", "anyOf", "allOf"):
        schemas = schema.get(key)
        parts = [*parts, *(schemas if isinstance(schemas, list) else [schemas])]
    for part in parts:
        yield from _list_marked(part, path)


def _get_object(schema: dict[str, Any], key: str) -> dict[str, Any]:
    member = schema.get(key)
    return member if isinstance(member, dict) else {}
