"""Every Iceberg catalog states each fact that others ask of it."""

from typing import get_args

import pytest

from lakewriter.commit.iceberg.rest_services import find_remedies
from lakewriter.dialects.registry import MODELS
from lakewriter.spec.catalogs import AnyRestService, GlueService, RestService

FACTS = [name for kind in GlueService.__mro__ for name, of in vars(kind).get("__annotations__", {}).items()
         if "ClassVar" in str(of) and not name.startswith("__")]  # fmt: skip
SERVICES = [GlueService, *(get_args(AnyRestService) or [AnyRestService])]


@pytest.mark.parametrize("service", SERVICES)
def test_facts(service):
    assert "chooses_location" in FACTS
    assert [fact for fact in FACTS if not hasattr(service, fact)] == []
    assert len(get_args(service.model_fields["kind"].annotation)) == 1


def list_leaves(kind: type) -> set[type]:
    """Return the classes that nothing derives from, itself included."""
    return set().union(*map(list_leaves, kind.__subclasses__())) or {kind}


def test_every_rest_catalog_is_in_the_union():
    assert list_leaves(RestService) == set(SERVICES[1:])


@pytest.mark.parametrize("service", SERVICES)
def test_messages_name_it_as_a_file_does(service):
    (kind,) = get_args(service.model_fields["kind"].annotation)
    assert any(kind in dict(model.key_names.catalogs) for model in MODELS.values())


@pytest.mark.parametrize("service", SERVICES[1:])
def test_remedies_have_fields_that_there_are(service):
    """A field that there is not would hide the catalog's refusal behind an error of its own."""
    given = service.model_construct(**dict.fromkeys(service.model_fields, "given"))
    remedies = find_remedies(given)
    texts = [remedies.secret, remedies.role, remedies.name, *(text for _, text in remedies.forbidden)]
    for text in texts:
        assert text.format(**dict(given), catalog="", in_glue="", bucket="")
