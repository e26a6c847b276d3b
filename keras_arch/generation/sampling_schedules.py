"""How often training feeds the true token, as a function of the step (Bengio et al. 2015)."""

import dataclasses

import keras
from keras import ops


@dataclasses.dataclass(frozen=True)
class SamplingSchedule:
    """Gives the probability epsilon of the true token; a subclass says how it falls."""

    def get_config(self):
        """Returns the fields."""
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config):
        """Rebuilds the schedule from its fields."""
        return cls(**config)

    def epsilon(self, step):
        """Returns epsilon, float32 scalar, at a step, float32 scalar from 0."""
        raise NotImplementedError


@keras.saving.register_keras_serializable(package="keras_arch")
@dataclasses.dataclass(frozen=True)
class LinearSampling(SamplingSchedule):
    """`epsilon = max(last, first - slope * step)`. Source: Bengio et al. 2015, section 2.4.

    `LinearSampling(0, 0, 0)` is free running, `LinearSampling(1, 0, 1)` teacher forcing.

    Attributes:
        first: Epsilon at step 0, in [0, 1].
        slope: What it falls by at each step, at least 0.
        last: Where it stays, in [0, first].
    """

    first: float
    slope: float
    last: float

    def __post_init__(self):
        if not 0.0 <= self.last <= self.first <= 1.0:
            raise ValueError(
                "first and last must keep 0 <= last <= first <= 1; received "
                f"first={self.first}, last={self.last}."
            )
        if not self.slope >= 0.0:
            raise ValueError(f"slope must be at least 0; received slope={self.slope}.")

    def epsilon(self, step):
        return ops.maximum(self.first - self.slope * step, self.last)


@keras.saving.register_keras_serializable(package="keras_arch")
@dataclasses.dataclass(frozen=True)
class ExponentialSampling(SamplingSchedule):
    """`epsilon = base ** step`. Source: Bengio et al. 2015, section 2.4.

    Attributes:
        base: Below 1, above 0.
    """

    base: float

    def __post_init__(self):
        if not 0.0 < self.base < 1.0:
            raise ValueError(f"base must be in (0, 1); received base={self.base}.")

    def epsilon(self, step):
        return ops.power(ops.convert_to_tensor(self.base, "float32"), step)


@keras.saving.register_keras_serializable(package="keras_arch")
@dataclasses.dataclass(frozen=True)
class InverseSigmoidSampling(SamplingSchedule):
    """`epsilon = k / (k + exp(step / k))`. Source: Bengio et al. 2015, section 2.4.

    Attributes:
        k: At least 1; the larger, the later epsilon falls.
    """

    k: float

    def __post_init__(self):
        if not self.k >= 1.0:
            raise ValueError(f"k must be at least 1; received k={self.k}.")

    def epsilon(self, step):
        return self.k / (self.k + ops.exp(step / self.k))
