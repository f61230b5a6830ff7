"""SHA-256 of texts, a batch at a time.

DataFusion hashes a batch in about a third of the time that a loop over hashlib takes; its threads do not survive a
fork, so a process forked after first use uses hashlib. It is loaded where the first batch is hashed: that takes
a second, which the driver need not wait for.
"""

import hashlib
import os

import pyarrow as pa


def compute_digests(texts: pa.Array) -> pa.Array:
    """Return the lower-case hex digest of each text's UTF-8 bytes, in order; ``texts`` has no nulls."""
    from lakewriter.shape.datafusion_digest import digest_with_datafusion, get_session

    context, owner = get_session()
    return digest_with_datafusion(context, texts) if owner == os.getpid() else digest_with_hashlib(texts)


def digest_with_hashlib(texts: pa.Array) -> pa.Array:
    """Return the digests from the standard library."""
    sha256 = hashlib.sha256
    return pa.array([sha256(text).hexdigest() for text in texts.cast(pa.binary()).to_pylist()], pa.string())
