"""Rotary position embedding and the ways to stretch it beyond the trained context."""

import dataclasses
import math

import keras
import numpy as np
from keras import ops

from keras_arch.checks import check_positive
from keras_arch.layers.part import Part

LAYOUTS = ("half_split", "interleaved")


def inverse_frequencies(head_width, base):
    """Returns `base^(-2i/H)` for i = 0 .. H/2 - 1, float64 numpy `[H/2]`."""
    return base ** (-np.arange(0, head_width, 2, dtype="float64") / head_width)


@dataclasses.dataclass(frozen=True)
class RotaryScaling:
    """How rotary frequencies change for contexts longer than the trained one.

    Attributes:
        factor: How many times longer than trained, at least 1.
    """

    factor: float

    #: True if the frequencies depend on the length read so far.
    depends_on_length = False
    #: What queries and keys are multiplied by.
    magnitude = 1.0

    def __post_init__(self):
        if not self.factor >= 1.0:
            raise ValueError(f"factor must be at least 1; received factor={self.factor}.")

    def get_config(self):
        """Returns the fields."""
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config):
        """Rebuilds the scaling from its fields."""
        return cls(**config)

    def frequencies(self, head_width, base, length):
        """Returns the inverse frequencies.

        Args:
            head_width: H.
            base: The rotary base.
            length: int `[B]`, tokens read so far; used where `depends_on_length`.

        Returns:
            float `[H/2]`, or `[B, H/2]` where `depends_on_length`.
        """
        raise NotImplementedError


@keras.saving.register_keras_serializable(package="keras_arch")
@dataclasses.dataclass(frozen=True)
class LinearScaling(RotaryScaling):
    """Divides every position by `factor`. Source: Chen et al. 2023, section 2.3."""

    def frequencies(self, head_width, base, length):
        return inverse_frequencies(head_width, base) / self.factor


@keras.saving.register_keras_serializable(package="keras_arch")
@dataclasses.dataclass(frozen=True)
class DynamicNTKScaling(RotaryScaling):
    """Raises the base with the length read so far, once it passes `context_length`.

    `base' = base * (factor * L / context_length - (factor - 1))^(H / (H - 2))`, for L = the row's
    own length and at least `context_length`. Source: Peng et al. 2023 (YaRN), appendix B.2.

    With L every key turns anew, so attention caches keys before rotation: a step of one layer then
    equals its pass over the same prefix. Beyond `context_length` that pass is not causal, a longer
    row changes its earlier outputs; so in a stack, whose deeper layers keep keys made of those, a
    cached step differs from a full pass there.
    """

    context_length: int
    depends_on_length = True

    def __post_init__(self):
        super().__post_init__()
        check_positive(context_length=self.context_length)

    def frequencies(self, head_width, base, length):
        length = ops.cast(ops.maximum(length, self.context_length), "float32")[:, None]
        stretch = self.factor * length / self.context_length - (self.factor - 1)
        exponents = -np.arange(0, head_width, 2) / max(head_width - 2, 1)
        base_frequencies = ops.cast(inverse_frequencies(head_width, base), "float32")
        return base_frequencies * ops.power(stretch, ops.cast(exponents, "float32"))


@keras.saving.register_keras_serializable(package="keras_arch")
@dataclasses.dataclass(frozen=True)
class YarnScaling(RotaryScaling):
    """Interpolates slow frequencies, keeps fast ones, ramps between, and sharpens attention.

    A frequency that turns more than `beta_fast` times in the trained context is kept, one that
    turns less than `beta_slow` times is divided by `factor`; between, the share is linear in the
    column, as in the authors' code. Queries and keys are both multiplied by `0.1 ln(factor) + 1`.
    Source: Peng et al. 2023 (YaRN), sections 3.2 to 3.4.
    """

    context_length: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        check_positive(context_length=self.context_length)
        if self.beta_fast <= self.beta_slow:
            raise ValueError(
                "beta_fast must be above beta_slow; received "
                f"beta_fast={self.beta_fast}, beta_slow={self.beta_slow}."
            )

    @property
    def magnitude(self):
        return 0.1 * math.log(self.factor) + 1.0

    def frequencies(self, head_width, base, length):
        def column(turns):
            ratio = self.context_length / (turns * 2 * math.pi)
            return head_width * math.log(ratio) / (2 * math.log(base))

        low = max(math.floor(column(self.beta_fast)), 0)
        high = min(math.ceil(column(self.beta_slow)), head_width - 1)
        columns = np.arange(head_width // 2, dtype="float64")
        ramp = np.clip((columns - low) / max(high - low, 1e-3), 0.0, 1.0)
        kept = inverse_frequencies(head_width, base)
        return kept * (1 - ramp) + kept / self.factor * ramp


@keras.saving.register_keras_serializable(package="keras_arch")
class Rotary(Part):
    """Turns pairs of columns of queries and keys by an angle that grows with the position.

    Pair i at position p turns by `p * base^(-2i/H)`. Source: Su et al. 2021 (RoFormer), section
    3.2.2. Angles and the turn itself are float32 in every precision.

    Args:
        base: The rotary base.
        layout: Which columns form a pair: "half_split" (i and i + H/2: GPT-NeoX, LLaMA weights of
            Hugging Face) or "interleaved" (2i and 2i + 1: the paper, GPT-J, Meta's LLaMA weights).
        scaling: Optional `LinearScaling`, `DynamicNTKScaling` or `YarnScaling`.

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
