"""Random JSON schemas with records that conform to them, and values that may not."""

from typing import Any, Literal

from hypothesis import strategies as st

SURROGATES: tuple[Literal["Cs"]] = ("Cs",)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=SURROGATES), min_size=1, max_size=6)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=SURROGATES), max_size=12)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), TEXT,
    st.sampled_from(["2021-01-02", "2021-01-02T03:04:05Z", "03:04:05", "1970-01-01 00:00:00.0000001"]),
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
LEAVES = st.sampled_from(
    [
        {"type": "string"}, {"type": ["null", "integer"]}, {"type": "number"}, {"type": "boolean"}, {},
        {"type": "null"},
        {"type": "string", "format": "date"}, {"type": "string", "format": "date-time"},
        {"type": "string", "format": "time"}, {"type": "object"}, {"type": "array"}, {"type": ["string", "integer"]},
        {"type": "string", "format": "date-time", "airbyte_type": "timestamp_without_timezone"},
    ]
)  # fmt: skip


def _wider(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(NAMES, inner, max_size=3)
    return st.one_of(
        properties.map(lambda own: {"type": "object", "properties": own}),
        st.tuples(properties, properties).map(
            lambda own: {"type": "object", "properties": own[0], "anyOf": [{"properties": own[1]}, {"required": []}]}
        ),
        inner.map(lambda own: {"type": "array", "items": own}),
        st.lists(inner, min_size=1, max_size=3).map(lambda own: {"oneOf": own}),
        st.lists(inner, min_size=1, max_size=2).map(lambda own: {"type": "array", "items": own}),
    )


SCHEMAS = st.dictionaries(NAMES, st.recursive(LEAVES, _wider, max_leaves=5), min_size=1, max_size=4).map(
    lambda own: {"type": "object", "properties": own}
)

_OBJECTS = st.recursive(
    st.just({"type": "object", "properties": {"x": {"type": "integer"}}}),
    lambda inner: st.one_of(
        inner.map(lambda own: {"type": "object", "properties": {"x": own}}),
        inner.map(lambda own: {"type": "array", "items": own}),
        inner.map(lambda own: {"oneOf": [own, {"type": "string"}]}),
        inner.map(lambda own: {"oneOf": [own, {"type": "array", "items": own}, {"type": "boolean"}]}),
    ),
    max_leaves=4,
)
WIDE_SCHEMAS = st.lists(_OBJECTS, min_size=2, max_size=4).map(
    lambda own: {"type": "object", "properties": dict(zip("abcd", own, strict=False))}
)
"""Properties side by side, each with objects in it, which Avro gives names to."""


@st.composite
def conforming(draw: st.DrawFn, schema: Any) -> Any:
    """A value near a schema: mostly of its type, sometimes anything."""
    if draw(st.integers(0, 5)) == 0 or not isinstance(schema, dict):
        return draw(ANYTHING)
    if "oneOf" in schema:
        return draw(conforming(draw(st.sampled_from(schema["oneOf"]))))
    if "properties" in schema:
        found = {name: draw(conforming(own)) for name, own in schema["properties"].items() if draw(st.booleans())}
        return found | draw(st.dictionaries(NAMES, SCALARS, max_size=1))
    if "items" in schema:
        items = schema["items"] if isinstance(schema["items"], list) else [schema["items"]]
        return [draw(conforming(draw(st.sampled_from(items)))) for _ in range(draw(st.integers(0, 3)))]
    kinds = {"string": TEXT, "integer": st.integers(-(2**63), 2**63 - 1), "boolean": st.booleans()}
    return draw(kinds.get(str(schema.get("type")), ANYTHING))
