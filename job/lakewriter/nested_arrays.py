"""Take nested Arrow arrays apart: the entries of maps, and the bounds of lists in their flattened values."""

import pyarrow as pa
import pyarrow.compute as pc


def list_map_entries(array: pa.MapArray) -> pa.ListArray:
    """A map as the list of its entries, for which more of Arrow's functions exist; shares its buffers."""
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
