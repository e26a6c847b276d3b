"""The encoders that are timed, the same for all peers, and the FLOPs that they must do."""

from typing import NamedTuple


class BERTShape(NamedTuple):
    """A BERT with a classifier: V, D, layers, N, longest sequence."""

    vocabulary_size: int
    width: int
    layers: int
    heads: int
    context_length: int

    def reading_operations(self, batch, time):
        """Returns the FLOPs of a forward pass: 2 per matrix entry and token, and attention's."""
        return 2 * (12 * self.width + 2 * time) * self.layers * self.width * batch * time

    def training_operations(self, batch, time):
        """Returns the FLOPs of a step: thrice those of the forward pass."""
        return 3 * self.reading_operations(batch, time)


BERT_SHAPES = {
    "bert-tiny": BERTShape(30_522, 128, 2, 2, 512),
    "bert-small": BERTShape(30_522, 512, 4, 8, 512),
    "bert-base": BERTShape(30_522, 768, 12, 12, 512),
}
CLASSES = 2
