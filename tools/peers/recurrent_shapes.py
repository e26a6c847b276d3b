"""The recurrent models that are timed, the same for all peers, and the FLOPs of a step."""

from typing import NamedTuple


class LSTMShape(NamedTuple):
    """A language model: a table, LSTM layers of its width, a head of its own."""

    vocabulary_size: int
    width: int
    layers: int

    def training_operations(self, batch, time):
        """Returns the FLOPs of a step: 6 per matrix entry and token."""
        entries = self.layers * 8 * self.width**2 + self.vocabulary_size * self.width
        return 6 * entries * batch * time


class BahdanauShape(NamedTuple):
    """A translator: a bidirectional LSTM reads, an LSTM attends additively; all of one width."""

    vocabulary_size: int
    width: int

    def training_operations(self, batch, time):
        """Returns the FLOPs of a step, source and target being `time` tokens each."""
        d = self.width
        # Encoder, keys, query, cell (input, context and state), output layer, head.
        entries = 2 * 8 * d**2 + 2 * d**2 + d**2 + 4 * (d + 2 * d + d) * d + 3 * d**2
        entries += self.vocabulary_size * d
        # Scores and contexts: width and twice the width for each pair of tokens.
        return 6 * (entries + time * 3 * d) * batch * time


RECURRENT_SHAPES = {
    "lstm": LSTMShape(8_192, 512, 2),
    "bahdanau": BahdanauShape(8_192, 256),
}
