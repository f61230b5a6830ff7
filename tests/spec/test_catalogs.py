"""Every Iceberg catalog states each fact that others ask of it."""

from typing import get_args

import pytest

from lakewriter.spec.catalogs import AnyRestService, GlueService, RestService

FACTS = [name for kind in GlueService.__mro__ for name, of in vars(kind).get("__annotations__", {}).items()
         if "ClassVar" in str(of) and not name.startswith("__")]  # fmt: skip
SERVICES = [GlueService, *(get_args(AnyRestService) or [AnyRestService])]


@pytest.mark.parametrize("service", SERVICES)
def test_facts(service):
    assert "chooses_location" in FACTS
    assert [fact for fact in FACTS if not hasattr(service, fact)] == []
    assert len(get_args(service.model_fields["kind"].annotation)) == 1


def test_every_rest_catalog_is_in_the_union():
    assert set(RestService.__subclasses__()) == set(SERVICES[1:])
