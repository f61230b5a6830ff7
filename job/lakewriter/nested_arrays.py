"""Take Arrow arrays apart: the entries of maps, the bounds of lists in their flattened values, the bytes of texts."""

import pyarrow as pa
import pyarrow.compute as pc


def list_map_entries(array: pa.MapArray) -> pa.ListArray:
    """Return a map as the list of its entries, for which more of Arrow's functions exist; it shares the map's
    buffers."""
    keys, items = array.keys, array.items
    entries = pa.StructArray.from_arrays([keys, items], names=["key", "value"])
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(
        pa.list_(entries.type), len(array), buffers, array.null_count, array.offset, children=[entries]
    )


def compute_flat_offsets(lists: pa.Array) -> pa.Array:
    """Offsets into ``lists.flatten()``, which leaves out what lies outside a slice or under a null."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def read_text_bytes(texts: pa.StringArray) -> bytes:
    """Return the bytes of all values of a string array, one behind the other, as they lie in memory."""
    start, end = find_text_bounds(texts, pa.int32())
    return bytes(texts.buffers()[2].slice(start, end - start)) if end > start else b""


def find_text_bounds(texts: pa.Array, offset: pa.DataType) -> tuple[int, int]:
    """Return where the bytes of an array's first value begin and those of its last one end; ``offset`` is the type of
    its offsets."""
    if not len(texts):
        return 0, 0
    buffers = [None, texts.buffers()[1]]
    offsets = pa.Array.from_buffers(offset, len(texts) + 1, buffers, null_count=0, offset=texts.offset)
    return int(offsets[0].as_py()), int(offsets[-1].as_py())
