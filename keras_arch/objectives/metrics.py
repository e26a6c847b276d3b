"""Metrics over tokens, exact for any split into batches and replicas. Use as `weighted_metrics`."""

import math

import keras
from keras import ops

from keras_arch.objectives.crossentropy import check_shapes, token_nats, token_weights, weighted_sum


@keras.saving.register_keras_serializable(package="keras_arch")
class TokenNats(keras.metrics.Metric):
    """Mean cross-entropy per real token in nats: sum of nats over sum of tokens, of all updates.

    Call arguments:
        y_true: int `[B, T]`; -1 is ignored.
        y_pred: Logits, float `[B, T, V]`.
        sample_weight: Optional bool or float `[B, T]`.
    """

    def __init__(self, name="nats", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_weight(initializer="zeros", dtype="float32", name="total")
        self.count = self.add_weight(initializer="zeros", dtype="float32", name="count")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        targets, logits = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if sample_weight is not None:
            sample_weight = ops.convert_to_tensor(sample_weight)
        check_shapes(targets, logits, sample_weight)
        weights = token_weights(targets, sample_weight)
        self.total.assign_add(weighted_sum(token_nats(targets, logits), weights))
        self.count.assign_add(ops.sum(weights))

    def mean(self):
        """Returns the nats per token so far, float32 scalar; 0 before the first token."""
        count = ops.convert_to_tensor(self.count)
        return self.total / ops.where(count > 0, count, 1.0)

    def result(self):
        """Returns the nats per token so far, float32 scalar."""
        return self.mean()


@keras.saving.register_keras_serializable(package="keras_arch")
class Perplexity(TokenNats):
    """`exp(nats per token)`: the inverse geometric mean of the true tokens' probabilities."""

    def __init__(self, name="perplexity", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def result(self):
        """Returns the perplexity so far, float32 scalar."""
        return ops.exp(self.mean())


@keras.saving.register_keras_serializable(package="keras_arch")
class BitsPerCharacter(TokenNats):
    """`nats per token / ln 2 * tokens per character`: comparable between tokenizers.

    Args:
        tokens_per_character: Tokens over characters of the text measured; 1 for characters.
    """

    def __init__(self, tokens_per_character=1.0, name="bits_per_character", dtype=None):
        super().__init__(name=name, dtype=dtype)
        if not tokens_per_character > 0:
            raise ValueError(
                "tokens_per_character must be positive; received "
                f"tokens_per_character={tokens_per_character}."
            )
        self.tokens_per_character = tokens_per_character

    def result(self):
        """Returns the bits per character so far, float32 scalar."""
        return self.mean() / math.log(2.0) * self.tokens_per_character

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "tokens_per_character": self.tokens_per_character}
