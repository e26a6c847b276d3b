"""Rotary position embedding."""

import keras
from keras import ops

from keras_arch.layers.part import Part
from keras_arch.layers.rotary_scaling import inverse_frequencies

LAYOUTS = ("half_split", "interleaved")


@keras.saving.register_keras_serializable(package="keras_arch")
class Rotary(Part):
    """Turns pairs of columns of queries and keys by an angle that grows with the position.

    Pair i at position p turns by `p * base^(-2i/H)`. Source: Su et al. 2021 (RoFormer), section
    3.2.2. Angles and the turn itself are float32 in every precision.

    Args:
        base: The rotary base.
        layout: Which columns form a pair: "half_split" (i and i + H/2: GPT-NeoX, LLaMA weights of
            Hugging Face) or "interleaved" (2i and 2i + 1: the paper, GPT-J, Meta's LLaMA weights).
        scaling: Optional `LinearScaling`, `DynamicNTKScaling`, `YarnScaling` or `Llama3Scaling`.

    Call arguments:
        x: float `[B, N, T, H]`, H even.
        positions: int `[B, T]`.
        length: int `[B]`, tokens in each row so far; needed by `DynamicNTKScaling` only.

    Returns:
        float `[B, N, T, H]`.

    Raises:
        ValueError: If `layout` is unknown or H is odd.
    """

    def __init__(self, base=10000.0, layout="half_split", scaling=None, **kwargs):
        super().__init__(**kwargs)
        if layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {LAYOUTS}; received layout={layout!r}.")
        if not base > 1.0:
            raise ValueError(f"base must be above 1; received base={base}.")
        self.base = base
        self.layout = layout
        self.scaling = scaling

    @property
    def depends_on_length(self):
        """True if a key's rotation changes as the row grows."""
        return self.scaling is not None and self.scaling.depends_on_length

    def call(self, x, positions, length=None):
        head_width = x.shape[-1]
        if head_width % 2:
            raise ValueError(f"the head width must be even; received head_width={head_width}.")
        cosine, sine = self._turn(head_width, positions, length)
        dtype, x = x.dtype, ops.cast(x, "float32")
        if self.layout == "half_split":
            first, second = ops.split(x, 2, axis=-1)
        else:
            first, second = x[..., 0::2], x[..., 1::2]
        turned = first * cosine - second * sine, second * cosine + first * sine
        if self.layout == "half_split":
            y = ops.concatenate(turned, axis=-1)
        else:
            y = ops.reshape(ops.stack(turned, axis=-1), ops.shape(x))
        return ops.cast(y, dtype)

    def compute_output_spec(self, x, positions, length=None):
        return keras.KerasTensor(x.shape, x.dtype)

    def _turn(self, head_width, positions, length):
        """Returns the cosines and sines, float32 `[B, 1, T, H/2]`."""
        if self.scaling is None:
            frequencies, magnitude = inverse_frequencies(head_width, self.base), 1.0
        else:
            frequencies = self.scaling.frequencies(head_width, self.base, length)
            magnitude = self.scaling.magnitude
        frequencies = ops.cast(frequencies, "float32")
        if self.depends_on_length:
            frequencies = frequencies[:, None, None, :]
        angles = ops.cast(positions, "float32")[:, None, :, None] * frequencies
        return ops.cos(angles) * magnitude, ops.sin(angles) * magnitude
