"""How rotary frequencies change to stretch a model beyond its trained context."""

import dataclasses
import math

import keras
import numpy as np
from keras import ops

from keras_arch.checks import check_positive


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
@dataclasses.dataclass(frozen=True)
class Llama3Scaling(RotaryScaling):
    """Interpolates slow frequencies, keeps fast ones, ramps between.

    A frequency that turns at least `high_turns` times in the trained context is kept, one that
    turns at most `low_turns` times is divided by `factor`; between, the share is linear in the
    turns. Source: Meta's code of LLaMA 3.1 (Grattafiori et al. 2024), `apply_scaling`.
    """

    context_length: int
    low_turns: float = 1.0
    high_turns: float = 4.0

    def __post_init__(self):
        super().__post_init__()
        check_positive(context_length=self.context_length)
        if self.high_turns <= self.low_turns:
            raise ValueError(
                "high_turns must be above low_turns; received "
                f"high_turns={self.high_turns}, low_turns={self.low_turns}."
            )

    def frequencies(self, head_width, base, length):
        kept = inverse_frequencies(head_width, base)
        turns = self.context_length * kept / (2 * math.pi)
        share = np.clip((turns - self.low_turns) / (self.high_turns - self.low_turns), 0.0, 1.0)
        return kept * share + kept / self.factor * (1 - share)
