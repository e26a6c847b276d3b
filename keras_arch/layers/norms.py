"""Norms over the last axis, in float32, with their gradients in closed form.

The closed form is what makes them worth having beside Keras's: derived operation by operation, a
norm adds three terms to the gradient of the residual stream, and XLA on CPU then computes the sum
of all of them again for each of its readers: 1.7 times the processor time of a small gradient.
"""

import keras
from keras import ops

from keras_arch.backend import kernel
from keras_arch.layers.part import Part


def layer_norm(x, scale, offset, epsilon):
    """Returns `(x - mean) / sqrt(variance + epsilon) * scale + offset`, float32.

    Source: Ba et al. 2016, section 3. The gradient by x is, with `u` the normed x and `t` the
    upstream gradient times `scale`, `(t - mean(t) - u * mean(t * u)) / sqrt(variance + epsilon)`.
    """
    native = kernel("layer_norm")
    if native is not None:
        return native(x, x.shape[-1:], scale, offset, epsilon)
    return _layer_norm(x, scale, offset, ops.convert_to_tensor(epsilon, "float32"))


def rms_norm(x, scale, epsilon):
    """Returns `x / sqrt(mean(x^2) + epsilon) * scale`, float32. Source: Zhang & Sennrich 2019."""
    native = kernel("rms_norm")
    if native is not None:
        return native(x, x.shape[-1:], scale, epsilon)
    return _rms_norm(x, scale, ops.convert_to_tensor(epsilon, "float32"))


@ops.custom_gradient
def _layer_norm(x, scale, offset, epsilon):
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    inverse = ops.rsqrt(ops.mean(ops.square(centred), axis=-1, keepdims=True) + epsilon)

    def gradient(*arguments, upstream=None):
        # TensorFlow hands the upstream gradient over by position, JAX and PyTorch by name.
        upstream = arguments[0] if upstream is None else upstream
        unit, inner = centred * inverse, upstream * scale
        mean = ops.mean(inner, axis=-1, keepdims=True)
        along = unit * ops.mean(inner * unit, axis=-1, keepdims=True)
        return (
            (inner - mean - along) * inverse,
            _sum_rows(upstream * unit),
            _sum_rows(upstream),
            ops.zeros_like(epsilon),
        )

    return centred * inverse * scale + offset, gradient


@ops.custom_gradient
def _rms_norm(x, scale, epsilon):
    inverse = ops.rsqrt(ops.mean(ops.square(x), axis=-1, keepdims=True) + epsilon)

    def gradient(*arguments, upstream=None):
        upstream = arguments[0] if upstream is None else upstream
        unit, inner = x * inverse, upstream * scale
        along = unit * ops.mean(inner * unit, axis=-1, keepdims=True)
        return (inner - along) * inverse, _sum_rows(upstream * unit), ops.zeros_like(epsilon)

    return x * inverse * scale, gradient


def _sum_rows(x):
    return ops.sum(x, axis=tuple(range(len(x.shape) - 1)))


@keras.saving.register_keras_serializable(package="keras_arch")
class RMSNorm(Part):
    """Divides by the root mean square over the last axis; see `rms_norm`.

    Args:
        epsilon: Added to the mean square.

    Call arguments:
        x: float `[..., D]`.

    Returns:
        float `[..., D]`.

    Raises:
        ValueError: If `epsilon` is not positive.
    """

    def __init__(self, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        _check_epsilon(epsilon)
        self.epsilon = epsilon

    def build(self, x_shape):
        self.scale = self.add_weight(shape=x_shape[-1:], initializer="ones", name="scale")

    def call(self, x):
        y = rms_norm(_float32(x), _float32(self.scale), self.epsilon)
        return ops.cast(y, self.compute_dtype)

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_arch")
class LayerNorm(Part):
    """Centres and divides by the standard deviation over the last axis; see `layer_norm`.

    Args:
        epsilon: Added to the variance.
        center: Whether a learned offset is added.

    Call arguments:
        x: float `[..., D]`.

    Returns:
        float `[..., D]`.

    Raises:
        ValueError: If `epsilon` is not positive.
    """

    def __init__(self, epsilon=1e-5, center=True, **kwargs):
        super().__init__(**kwargs)
        _check_epsilon(epsilon)
        self.epsilon = epsilon
        self.center = center

    def build(self, x_shape):
        self.scale = self.add_weight(shape=x_shape[-1:], initializer="ones", name="scale")
        if self.center:
            self.offset = self.add_weight(shape=x_shape[-1:], initializer="zeros", name="offset")

    def call(self, x):
        scale = _float32(self.scale)
        offset = _float32(self.offset) if self.center else ops.zeros_like(scale)
        y = layer_norm(_float32(x), scale, offset, self.epsilon)
        return ops.cast(y, self.compute_dtype)

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, self.compute_dtype)


def _float32(x):
    return ops.cast(ops.convert_to_tensor(x), "float32")


def _check_epsilon(epsilon):
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive; received epsilon={epsilon}.")
