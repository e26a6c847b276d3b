"""Batches of pairs for sequence-to-sequence training: rows of like length together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_arch.checks import check_count, check_positive
from keras_arch.text.pair_rows import pad_pairs, pair_specs
from keras_arch.text.pipeline import finish

LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128)


class PairBatches:
    """Batches of pairs of token ids, each padded on the right to one of a few lengths.

    A pair goes to the shortest length that holds its source, and its target with the end. A batch
    of length L has about `tokens / L` rows: all batches are about one size, and a model is compiled
    for few shapes. In each epoch each pair is in one batch, once; the last batch of a length is
    filled up with rows of pads.

    A batch is `(inputs, targets, weights)`: inputs `source_ids` and `token_ids` int32 `[B, L]`,
    `source_valid` and `valid` bool `[B, L]`; `token_ids` begins with the start id, `targets` int32
    `[B, L]` ends with the end id; weights bool `[B, L]`.

    Args:
        sources: Rows of ids, none empty.
        targets: As many rows of ids.
        start_id: What a target is begun with.
        end_id: What it ends with.
        tokens: Positions of a batch on either side, at least the largest length in use.
        multiple: What the rows of each batch are a multiple of: replicas times micro-batches.
        seed: Of the order; None keeps the rows in the order of their lengths.
        lengths: What rows are padded to.

    Attributes:
        steps: Batches of an epoch.

    Raises:
        ValueError: If a row is empty or longer than the largest length, the numbers of rows differ,
            or an argument is out of range.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        start_id: int,
        end_id: int,
        tokens: int,
        multiple: int = 1,
        seed: int | None = None,
        lengths: Sequence[int] = LENGTHS,
    ):
        check_positive(tokens=tokens, multiple=multiple)
        if seed is not None:
            check_count(seed=seed)
        if not len(sources) or len(sources) != len(targets):
            raise ValueError(
                "sources and targets must hold as many rows, at least one; received "
                f"{len(sources)} and {len(targets)}."
            )
        self.sources = [np.asarray(row, np.int32) for row in sources]
        self.targets = [np.asarray(row, np.int32) for row in targets]
        self.start_id, self.end_id, self.seed = start_id, end_id, seed
        self.lengths = tuple(sorted(lengths))
        needed = self._needed()
        least = self.lengths[needed.max()] * multiple
        if tokens < least:
            raise ValueError(
                f"tokens must be at least {least}, multiple={multiple} rows of the largest length "
                f"in use; received tokens={tokens}."
            )
        self._members = {
            length: np.flatnonzero(needed == i)
            for i, length in enumerate(self.lengths)
            if (needed == i).any()
        }
        self._rows = {length: tokens // length // multiple * multiple for length in self._members}
        self.steps = sum(-(-len(m) // self._rows[length]) for length, m in self._members.items())

    def dataset(self, start_step: int = 0, epochs: int | None = None) -> tf.data.Dataset:
        """Returns the batches from a step on; `epochs` times all, or without end.

        The batch of a step depends on the arguments alone, so a run continues at no cost.
        """
        check_count(start_step=start_step)

        def batches() -> Iterator[tuple]:
            for epoch in itertools.count(start_step // self.steps):
                if epoch == epochs:
                    return
                begin = start_step % self.steps if epoch == start_step // self.steps else 0
                for length, members in self._epoch(epoch)[begin:]:
                    yield self._batch(length, members)

        dataset = tf.data.Dataset.from_generator(batches, output_signature=pair_specs())
        if epochs is not None:
            left = max(epochs * self.steps - start_step, 0)
            dataset = dataset.apply(tf.data.experimental.assert_cardinality(left))
        return finish(dataset)

    def _needed(self) -> np.ndarray:
        """Returns the index of each pair's length."""
        sizes = [
            (len(source), len(target) + 1)
            for source, target in zip(self.sources, self.targets, strict=True)
        ]
        for i, (source, target) in enumerate(sizes):
            if source == 0 or target == 1:
                raise ValueError(
                    f"sources and targets must not be empty; received {source} and {target - 1} "
                    f"tokens in row {i}."
                )
            if max(source, target) > self.lengths[-1]:
                raise ValueError(
                    f"rows must hold at most {self.lengths[-1]} tokens, the end of a target "
                    f"included; received {source} and {target} in row {i}."
                )
        return np.searchsorted(self.lengths, [max(pair) for pair in sizes])

    def _epoch(self, epoch: int) -> list[tuple[int, np.ndarray]]:
        """Returns the batches of an epoch: a length, and which pairs."""
        random = None if self.seed is None else np.random.default_rng([self.seed, epoch])
        batches = []
        for length, members in self._members.items():
            if random is not None:
                members = random.permutation(members)
            for begin in range(0, len(members), self._rows[length]):
                batches.append((length, members[begin : begin + self._rows[length]]))
        if random is not None:
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def _batch(self, length: int, members: np.ndarray) -> tuple:
        pairs = [(self.sources[i], self.targets[i]) for i in members]
        shape = (self._rows[length], length)
        return pad_pairs(pairs, shape, shape, self.start_id, self.end_id)
