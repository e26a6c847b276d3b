"""The models that are timed, the same for all peers, and the work that they cannot do without."""

from typing import NamedTuple

import numpy as np


class Shape(NamedTuple):
    """A GPT-2 model: V, D, layers, N, longest sequence."""

    vocabulary_size: int
    width: int
    layers: int
    heads: int
    context_length: int

    def matrix_entries(self):
        """Returns the entries of the matrices that each token is multiplied by."""
        return 12 * self.layers * self.width**2 + self.vocabulary_size * self.width

    def training_operations(self, batch, time):
        """Returns the FLOPs of a step: 6 per matrix entry and token, and attention's products."""
        tokens = batch * time
        return (6 * self.matrix_entries() + 12 * self.layers * self.width * time) * tokens

    def decoding_bytes(self):
        """Returns the bytes of float32 weights that a new token of any batch must read."""
        return 4 * self.matrix_entries()


SHAPES = {
    "4x128": Shape(66, 128, 4, 4, 64),
    "6x384": Shape(8_192, 384, 6, 6, 1024),
    "12x768": Shape(50_257, 768, 12, 12, 1024),
}


def token_ids(shape, batch, time):
    """Returns random ids, int32 `[batch, time]`; never 0, which KerasHub takes for a pad."""
    random = np.random.default_rng(0)
    return random.integers(1, shape.vocabulary_size, (batch, time)).astype("int32")
