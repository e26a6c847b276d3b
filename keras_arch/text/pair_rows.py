"""Pairs of rows of ids as the arrays that sequence-to-sequence training takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf


def pad_pairs(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    source_shape: tuple[int, int],
    target_shape: tuple[int, int],
    start_id: int,
    end_id: int,
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Pads pairs on the right, to a batch `(inputs, targets, weights)`.

    Args:
        pairs: At most B pairs of source and target ids; the batch's other rows are pads.
        source_shape: `[B, S]`.
        target_shape: `[B, T]`; a target and its end need T positions.
        start_id: What `token_ids` begin with.
        end_id: What `targets` end with.

    Returns:
        Inputs `source_ids` int32 `[B, S]` and `token_ids` int32 `[B, T]` with `source_valid` and
        `valid`, bool; targets int32 `[B, T]`; weights bool `[B, T]`. Pads are 0.
    """
    source_ids = np.zeros(source_shape, np.int32)
    source_valid = np.zeros(source_shape, bool)
    token_ids, targets = np.zeros(target_shape, np.int32), np.zeros(target_shape, np.int32)
    valid = np.zeros(target_shape, bool)
    for row, (source, target) in enumerate(pairs):
        source_ids[row, : len(source)] = source
        source_valid[row, : len(source)] = True
        token_ids[row, 0] = start_id
        token_ids[row, 1 : len(target) + 1] = target
        targets[row, : len(target)] = target
        targets[row, len(target)] = end_id
        valid[row, : len(target) + 1] = True
    inputs = {"source_ids": source_ids, "source_valid": source_valid}
    return inputs | {"token_ids": token_ids, "valid": valid}, targets, valid


def pair_specs(
    source_shape: tuple[int | None, int | None] = (None, None),
    target_shape: tuple[int | None, int | None] = (None, None),
) -> tuple:
    """Returns the `tf.TensorSpec`s of a batch that `pad_pairs` makes."""
    inputs = {
        "source_ids": tf.TensorSpec(source_shape, tf.int32),
        "source_valid": tf.TensorSpec(source_shape, tf.bool),
        "token_ids": tf.TensorSpec(target_shape, tf.int32),
        "valid": tf.TensorSpec(target_shape, tf.bool),
    }
    weights = inputs["valid"]
    return inputs, inputs["token_ids"], weights
