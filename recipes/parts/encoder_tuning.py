"""What the recipes that go on from an encoder share: settings, weights, the order of the data."""

import dataclasses
import functools
import pathlib

import numpy as np
from parts.initial_encoder import copy_weights, read_initial
from parts.training_run import TrainingSettings, digest, train_in_folder

import keras_arch as ka
from keras_arch.checks import check_positive, check_rate

#: Layers that begin anew.
NEW = ("pooler", "classes", "span_scores")


@dataclasses.dataclass(frozen=True)
class EncoderTuningSettings(TrainingSettings):
    """What every recipe that goes on from an encoder can be asked."""

    data: str = "train.tsv"  # What to train on
    validation_data: str = "validation.tsv"  # What to evaluate on
    initial: str = "runs/encoder"  # Where encoder and tokenizer come from
    from_scratch: bool = False  # Take its shape and tokenizer, but not its weights
    context: int = 128  # Tokens of a row, the special ones included; the rest of a text is cut
    dropout: float = 0.1  # Dropout rate
    batch_size: int = 32  # Lines per update, over all replicas and micro-batches
    steps: int = 1000  # Updates
    evaluate_every: int = 100  # Updates between evaluations, each with a checkpoint
    learning_rate: float = 5e-5  # Peak of the learning rate
    minimum_learning_rate: float = 0.0  # Learning rate after the last update
    beta_2: float = 0.999  # Decay of AdamW's second moment
    weight_decay: float = 0.01  # AdamW's weight decay, on matrices

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        check_positive(batch_size=self.batch_size)
        check_rate(dropout=self.dropout)
        if self.batch_size % self.accumulate:
            raise ValueError(
                "accumulate must divide batch_size; received "
                f"accumulate={self.accumulate}, batch_size={self.batch_size}."
            )
        self.check_devices(strategy, self.batch_size // self.accumulate)
        for name in ("data", "validation_data"):
            if not pathlib.Path(getattr(self, name)).is_file():
                raise ValueError(f"{name} must be a file; received {name}={getattr(self, name)!r}.")
        most = self.start.config.context_length
        if not 3 <= self.context <= most:
            raise ValueError(
                f"context must be from 3 to {most}, that of initial; received "
                f"context={self.context}."
            )

    @functools.cached_property
    def start(self):
        """What the fine-tuning begins with."""
        return read_initial(self.initial)

    @property
    def files(self):
        """The paths of the texts to train on, and to evaluate on."""
        return pathlib.Path(self.data), pathlib.Path(self.validation_data)

    def config(self, vocabulary_size):
        """Returns the encoder's configuration: the initial one's, with this context."""
        return dataclasses.replace(
            self.start.config, context_length=self.context, dropout=self.dropout
        )

    def initialise(self, model):
        """Gives the model the initial weights."""
        if not self.from_scratch:
            copy_weights(self.start.model, model, NEW)

    def describe(self):
        """Returns what a run can only go on with: the data and the initial encoder."""
        return {
            "files": [self.files[0].name],
            "sha256": [*map(digest, self.files)],
            "initial": {file.name: digest(file) for file in self.start.files},
        }

    def shuffled(self, count):
        """Returns the function of numbers `[n]`, from 0 on without end, to those below `count`.

        Each comes once an epoch, in another order each time.
        """

        @functools.lru_cache(maxsize=2)
        def order_of(epoch):
            return np.random.default_rng([self.seed, epoch]).permutation(count)

        return lambda places: np.array([order_of(int(i) // count)[i % count] for i in places])


def tune(settings, run):
    """Trains, or goes on, or prints the report of a finished run.

    Args:
        settings: An `EncoderTuningSettings`.
        run: Function of the settings, the strategy and the run folder to the report.
    """
    strategy = ka.training.strategy(settings.strategy)
    settings.check(strategy)
    train_in_folder(
        settings, strategy, settings.describe(), lambda folder: run(settings, strategy, folder)
    )
