"""Checks of what the pipelines are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def checked_ids(ids: Sequence[int] | np.ndarray, vocabulary_size: int | None) -> np.ndarray:
    """Returns ids as an array `[n]`, n > 1; raises ValueError if one is not in the vocabulary."""
    ids = np.asarray(ids)  # A memmap stays on disk.
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(
            f"ids must be integers of shape [n]; received shape {ids.shape}, dtype {ids.dtype}."
        )
    if len(ids) < 2:
        raise ValueError(f"ids must hold at least 2 tokens; received {len(ids)}.")
    # Unsigned ids, as large files hold them, need no pass over the file.
    if np.issubdtype(ids.dtype, np.signedinteger) and ids.min() < 0:
        raise ValueError(f"ids must not be negative; received {ids.min()}.")
    if vocabulary_size is not None and ids.max() >= vocabulary_size:
        raise ValueError(
            f"ids must be below vocabulary_size={vocabulary_size}; received {ids.max()}."
        )
    return ids
