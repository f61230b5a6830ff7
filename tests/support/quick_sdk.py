"""botocore with less work for each client and request: every load of a test has sessions of its own.

What is shared is made of the service's model alone, which nothing changes; a client's settings, credentials and hooks
stay its own. Processes that tests start have botocore as it is.
"""

import http.client
import inspect
from collections.abc import Callable
from email.message import Message
from functools import cache, lru_cache
from io import BufferedIOBase, BytesIO
from typing import Any

import pytest
from botocore import hooks, useragent, utils
from botocore.client import ClientCreator
from botocore.endpoint_provider import EndpointProvider, RuleSet
from botocore.hooks import EventAliaser, NodeList
from botocore.loaders import JSONFileLoader, Loader
from botocore.model import ServiceModel

Methods = dict[str, Callable[..., Any]]


def share_models(patch: pytest.MonkeyPatch) -> None:
    """Parse each service's model once, and make what is made of it once, for as long as ``patch`` holds."""
    load_file = cache(JSONFileLoader().load_file)
    patch.setattr(JSONFileLoader, "load_file", lambda _, path: load_file(path))
    patch.setattr(ClientCreator, "_load_service_model", _share_service_models())
    patch.setattr(ClientCreator, "_create_methods", _share_methods())
    patch.setattr(EndpointProvider, "__init__", _share_rules())
    patch.setattr(EventAliaser, "_alias_event_name", _share_aliases())
    patch.setattr(hooks, "accepts_kwargs", _accepts_kwargs)
    clean = useragent.sanitize_user_agent_string_component
    patch.setattr(useragent, "sanitize_user_agent_string_component", cache(clean))
    patch.setattr(useragent.UserAgentComponent, "to_string", cache(useragent.UserAgentComponent.to_string))
    patch.setattr(NodeList, "__copy__", lambda nodes: NodeList(*(each[:] for each in nodes)))
    patch.setattr(Loader, "list_available_services", _share_services())
    parse = vars(utils)["_parse_timestamp_with_tzinfo"]
    patch.setattr(utils, "_parse_timestamp_with_tzinfo", lru_cache(10_000)(parse))
    patch.setattr(http.client, "parse_headers", _make_header_parser())


def _share_service_models() -> Callable[..., ServiceModel]:
    models: dict[tuple[str, int], ServiceModel] = {}

    def load(creator: Any, service_name: str, api_version: str | None = None) -> ServiceModel:
        # The files are parsed once, so that their content stays where it is.
        content = creator._loader.load_service_model(service_name, "service-2", api_version=api_version)
        return models.setdefault((service_name, id(content)), ServiceModel(content, service_name=service_name))

    return load


def _share_methods() -> Callable[..., Methods]:
    create = vars(ClientCreator)["_create_methods"]
    methods: dict[int, tuple[ServiceModel, Methods]] = {}

    def create_once(creator: Any, model: ServiceModel) -> Methods:
        if id(model) not in methods:
            methods[id(model)] = model, create(creator, model)
        # boto3 adds methods of its own.
        return dict(methods[id(model)][1])

    return create_once


def _share_rules() -> Callable[..., None]:
    rules: dict[tuple[int, int], tuple[Any, Any, RuleSet]] = {}

    def begin(provider: Any, ruleset_data: Any, partition_data: Any, excluded_params: Any = None) -> None:
        key = id(ruleset_data), id(partition_data)
        if key not in rules:
            rules[key] = ruleset_data, partition_data, RuleSet(**ruleset_data, partitions=partition_data)
        provider.ruleset = rules[key][2]
        provider._excluded_params = excluded_params or frozenset()

    return begin


def _share_aliases() -> Callable[..., str]:
    alias = vars(EventAliaser)["_alias_event_name"]
    names: dict[str, str] = {}

    def alias_once(aliaser: Any, event_name: str) -> str:
        if event_name not in names:
            names[event_name] = alias(aliaser, event_name)
        return names[event_name]

    return alias_once


def _share_services() -> Callable[..., list[str]]:
    list_services = vars(Loader)["list_available_services"]
    services: dict[tuple[tuple[str, ...], str], list[str]] = {}

    def list_once(loader: Any, type_name: str) -> list[str]:
        key = tuple(loader.search_paths), type_name
        if key not in services:
            services[key] = list_services(loader, type_name)
        return list(services[key])

    return list_once


def _accepts_kwargs(function: Any) -> Any:
    """Return the same as botocore's own, which makes a signature to find out."""
    code = getattr(function, "__code__", None)
    return code.co_flags & inspect.CO_VARKEYWORDS if code else inspect.getfullargspec(function)[2]


def _make_header_parser() -> Callable[..., Message]:
    parse = http.client.parse_headers

    def parse_plain(file: BufferedIOBase, _class: type[Message] = http.client.HTTPMessage) -> Message:
        """Return the headers of a request or an answer as Python does, which reads them by its parser of mails."""
        lines: list[bytes] = vars(http.client)["_read_headers"](file)
        pairs = [line.decode("iso-8859-1").partition(":") for line in lines[:-1]]
        if not all(colon and name == name.strip() for name, colon, _ in pairs):
            # A line that goes on with the one before it, or that is none of a header.
            return parse(BytesIO(b"".join(lines)), _class)
        message = _class()
        for name, _, value in pairs:
            message.set_raw(name, value.lstrip(" \t").rstrip("\r\n"))
        message.set_payload("")
        return message

    return parse_plain
