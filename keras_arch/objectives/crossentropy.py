"""Token cross-entropy, divided by the number of real tokens in the whole batch."""

import keras
import numpy as np
from keras import ops

from keras_arch.backend import checked, concrete, kernel, sum_over_replicas

#: The label of a position that is not to be predicted.
IGNORED = -1
REDUCTIONS = ("token_mean", "sum")


def token_nats(targets, logits, label_smoothing=0.0):
    """Returns each token's cross-entropy in nats, float32 `[B, T]`.

    With label smoothing e the target is `(1 - e) * one_hot + e / V` (Szegedy et al. 2016, section
    7). A label outside [0, V) gives NaN on every backend, never the loss of some other token.

    Args:
        targets: int `[B, T]`.
        logits: float `[B, T, V]`.
        label_smoothing: e.
    """
    # Keras builds a model under replicas with the mean of their labels, which is no integer.
    targets = ops.cast(targets, "int32")
    logits = ops.cast(logits, "float32")
    size = logits.shape[-1]
    in_range = ops.logical_and(targets >= 0, targets < size)
    safe = ops.where(in_range, targets, 0)
    return ops.where(in_range, _nats(safe, logits, label_smoothing), np.nan)


def _nats(targets, logits, label_smoothing):
    fused = kernel("cross_entropy")
    if fused is not None:
        rows = ops.reshape(logits, (-1, logits.shape[-1]))
        labels = ops.cast(ops.ravel(targets), "int64")
        nats = fused(rows, labels, reduction="none", label_smoothing=label_smoothing)
        return ops.reshape(nats, targets.shape)
    log_total = ops.logsumexp(logits, axis=-1)
    # A compiler makes one pass of this and its gradient; that of a lookup is a scatter.
    own = targets[..., None] == ops.arange(logits.shape[-1])
    nats = log_total - ops.sum(ops.where(own, logits, 0.0), axis=-1)
    if label_smoothing:
        uniform = log_total - ops.mean(logits, axis=-1)
        nats = (1.0 - label_smoothing) * nats + label_smoothing * uniform
    return nats


def token_weights(targets, weights=None):
    """Returns each token's weight, float32 `[B, T]`: 0 where the label is `IGNORED`."""
    counted = ops.cast(targets != IGNORED, "float32")
    return counted if weights is None else counted * ops.cast(weights, "float32")


def weighted_sum(values, weights):
    """Returns the sum of values times weights; a value of weight 0 may be anything, even NaN."""
    return ops.sum(ops.where(weights > 0, values, 0.0) * weights)


@keras.saving.register_keras_serializable(package="keras_arch")
class TokenCrossentropy(keras.losses.Loss):
    """`sum(w * l) / sum(w)` over the tokens of the *global* batch, all replicas together.

    Appending pads changes neither the loss nor a gradient, and two replicas with different numbers
    of tokens train as one would. A batch without any real token gives 0. Pass the weights that
    `next_token` returns as `sample_weight`; labels of -1 are ignored as well.

    Args:
        label_smoothing: e in [0, 1); see `token_nats`.
        z_loss: Weight of `log(Z)^2`, Z the softmax's denominator, which keeps logits from drifting
            (Chowdhery et al. 2022, section 5).
        reduction: "token_mean" as above; or "sum" of `w * l`, for weights that were already divided
            by a count, as gradient accumulation needs.

    Call arguments:
        y_true: int `[B, T]`.
        y_pred: Logits, float `[B, T, V]`.
        sample_weight: Optional bool or float `[B, T]`.

    Returns:
        float32 scalar, in nats.

    Raises:
        ValueError: If an argument is out of range, or a label of positive weight is outside
            [0, V). A compiled program raises the backend's own error with the same words, or, where
            it cannot (see `keras_arch.backend.checked`), such a label makes the loss NaN.
    """

    def __init__(
        self,
        label_smoothing=0.0,
        z_loss=0.0,
        reduction="token_mean",
        name="token_crossentropy",
        dtype=None,
    ):
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {REDUCTIONS}; received {reduction!r}.")
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(
                f"label_smoothing must be in [0, 1); received label_smoothing={label_smoothing}."
            )
        if not z_loss >= 0.0:
            raise ValueError(f"z_loss must not be negative; received z_loss={z_loss}.")
        super().__init__(name=name, reduction="sum", dtype=dtype)
        self.label_smoothing = label_smoothing
        self.z_loss = z_loss
        self.token_reduction = reduction

    def __call__(self, y_true, y_pred, sample_weight=None):
        targets, logits = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if sample_weight is not None:
            sample_weight = ops.convert_to_tensor(sample_weight)
        check_shapes(targets, logits, sample_weight)
        weights = token_weights(targets, sample_weight)
        targets = checked_labels(targets, weights, logits.shape[-1])
        all_counted = concrete(ops.all(weights > 0))
        # Without a compiler, to look costs less than to copy the logits.
        if all_counted is None or not all_counted:
            # What has no weight may be anything, even NaN, whose gradient no product would undo.
            logits = ops.where(weights[..., None] > 0, logits, 0.0)
        losses = token_nats(targets, logits, self.label_smoothing)
        if self.z_loss:
            log_total = ops.logsumexp(ops.cast(logits, "float32"), axis=-1)
            losses = losses + self.z_loss * ops.square(log_total)
        total = weighted_sum(losses, weights)
        if self.token_reduction == "sum":
            return total
        count = sum_over_replicas(ops.sum(weights))
        # An empty batch has a total of 0: any other denominator will do.
        return total / ops.where(count > 0, count, 1.0)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            "label_smoothing": self.label_smoothing,
            "z_loss": self.z_loss,
            "reduction": self.token_reduction,
            "name": self.name,
        }


def check_shapes(targets, logits, weights=None):
    """Raises ValueError unless targets and weights are `[B, T]`, logits `[B, T, V]`."""
    shapes = {"y_true": tuple(targets.shape), "y_pred": tuple(logits.shape)}
    if weights is not None:
        shapes["sample_weight"] = tuple(weights.shape)
    rows = [shapes["y_pred"][:-1], *(shape for name, shape in shapes.items() if name != "y_pred")]
    same = len({len(shape) for shape in rows}) == 1 and all(
        len({size for size in sizes if size is not None}) <= 1 for sizes in zip(*rows, strict=True)
    )
    if not same:
        raise ValueError(
            "y_true and sample_weight must have the shape of y_pred without its last axis, the "
            f"vocabulary; received {', '.join(f'{k}.shape={v}' for k, v in shapes.items())}."
        )


def checked_labels(targets, weights, vocabulary_size):
    """Returns the targets; raises for a label of positive weight outside the vocabulary.

    See `keras_arch.backend.checked` for what a compiled program does.
    """
    outside = ops.logical_or(targets < 0, targets >= vocabulary_size)
    if keras.backend.is_float_dtype(targets.dtype):
        outside = ops.logical_or(outside, targets != ops.floor(targets))
    wrong = ops.cast(ops.ravel(ops.logical_and(outside, weights > 0)), "int32")
    count = ops.sum(wrong)
    first = ops.sum(ops.where(wrong * ops.cumsum(wrong) == 1, ops.ravel(targets), 0))
    message = (
        f"labels must be integers in [0, {vocabulary_size}) or {IGNORED}, ignored; received {{}} "
        "others, the first {}."
    )
    return checked(targets, count == 0, message, count, first)
