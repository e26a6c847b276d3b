"""Batches of pairs drawn at random, for denoising and for mixtures of tasks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from keras_arch.checks import check_count, check_positive
from keras_arch.text.pair_draws import Draw, Pair
from keras_arch.text.pair_rows import pad_pairs, pair_specs
from keras_arch.text.pipeline import finish


def pair_stream(
    draw: Draw,
    *,
    batch_size: int,
    seed: int,
    start_id: int,
    end_id: int,
    source_length: int,
    target_length: int,
    end_sources: bool = False,
    start_step: int = 0,
) -> tf.data.Dataset:
    """Pairs drawn at random, without end, in batches of one shape.

    The batch of step i depends on `seed` and i alone, so a run continues at any step by
    `start_step`, at no cost. The batches are those of `PairBatches`.

    Args:
        draw: From `task_pairs`, `window_pairs` or `mixed_pairs`.
        batch_size: B, pairs per batch.
        seed: Non-negative integer.
        start_id: What a target is begun with.
        end_id: What it ends with.
        source_length: S, what sources are padded to.
        target_length: T, what targets and their ends are padded to.
        end_sources: Whether sources end with `end_id` too, as T5's and BART's do.
        start_step: The step whose batch comes first.

    Returns:
        An infinite dataset. A pair that is empty or does not fit ends it with an error that says
        how long it is: nothing is cut off in silence.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_positive(batch_size=batch_size, source_length=source_length, target_length=target_length)
    check_count(seed=seed, start_step=start_step, start_id=start_id, end_id=end_id)
    if target_length < 2:
        raise ValueError(
            "target_length must be at least 2, for a token and the end; received "
            f"target_length={target_length}."
        )
    shapes = (batch_size, source_length), (batch_size, target_length)

    def pair(random: np.random.Generator) -> Pair:
        source, target = draw(random)
        source = np.append(source, end_id) if end_sources else source
        if not 0 < len(source) <= source_length or not 0 < len(target) < target_length:
            raise ValueError(
                f"pairs must hold 1 to source_length={source_length} and 1 to "
                f"target_length - 1={target_length - 1} ids; received {len(source)} and "
                f"{len(target)}."
            )
        return source, target

    def batches() -> Iterator[tuple]:
        for step in itertools.count(start_step):
            random = np.random.default_rng([seed, step])
            pairs = [pair(random) for _ in range(batch_size)]
            yield pad_pairs(pairs, *shapes, start_id, end_id)

    return finish(tf.data.Dataset.from_generator(batches, output_signature=pair_specs(*shapes)))
