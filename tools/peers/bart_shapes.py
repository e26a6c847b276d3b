"""The encoder-decoders that are timed, the same for all peers, and the work that they must do."""

from typing import NamedTuple


class BARTShape(NamedTuple):
    """A BART: V, D, layers of each half, N, longest sequence."""

    vocabulary_size: int
    width: int
    layers: int
    heads: int
    context_length: int

    def training_operations(self, batch, time):
        """Returns the FLOPs of a step, source and target being `time` tokens each.

        6 per matrix entry and token: 12 D^2 of an encoder's layer and 16 D^2 of a decoder's; and
        three products of scores and of what they weigh a pair of layers.
        """
        entries = 28 * self.layers * self.width**2 + self.vocabulary_size * self.width
        return (6 * entries + 36 * self.layers * self.width * time) * batch * time

    def matrix_entries(self):
        """Returns the entries that each new token is multiplied by; keys of the source are made."""
        return 14 * self.layers * self.width**2 + self.vocabulary_size * self.width

    def decoding_bytes(self):
        """Returns the bytes of float32 weights that a new token of any batch must read."""
        return 4 * self.matrix_entries()


BART_SHAPES = {
    "bart-tiny": BARTShape(1_000, 64, 1, 2, 256),
    "bart-small": BARTShape(8_192, 384, 3, 6, 256),
    "bart-base": BARTShape(50_265, 768, 6, 12, 1024),
}
