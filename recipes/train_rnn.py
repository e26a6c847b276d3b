"""Trains a small n-gram, recurrent, LSTM or GRU language model on a text, into a run folder.

    KERAS_BACKEND=jax python recipes/train_rnn.py --model lstm --layers 2 --width 256

The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
With --stateful each row of a batch goes on where that of the batch before ended, from its state.
"""

import dataclasses
import pathlib
from typing import Literal

from parts import text_model
from parts.language_model import LanguageModelSettings
from parts.training_run import command

import keras_arch as ka


@dataclasses.dataclass(frozen=True)
class Settings(LanguageModelSettings):
    """Settings of a recurrent or fixed-window language model."""

    run_folder: pathlib.Path = pathlib.Path("runs/rnn")  # Where everything goes
    model: Literal["ngram", "rnn", "lstm", "gru"] = "lstm"  # Kind of model
    width: int = 256  # Width of token vectors and of each layer
    layers: int = 2  # Recurrent layers
    residual: bool = False  # Add each recurrent layer's output to its input
    normalise: bool = False  # Layer norm inside the recurrent layers
    order: int = 5  # Of the n-gram model: tokens in a window, with the one predicted
    dropout: float = 0.0  # Dropout rate
    recurrent_dropout: float = 0.0  # Dropout rate of the recurrent state where it is multiplied
    initializer_range: float = 0.08  # Deviation of the initial table
    learning_rate: float = 2e-3  # Peak of the learning rate
    stateful: bool = False  # Carry the state from batch to batch

    def config(self, vocabulary_size):
        """Returns the model's configuration."""
        shared = {
            "vocabulary_size": vocabulary_size,
            "width": self.width,
            "dropout": self.dropout,
            "initializer_range": self.initializer_range,
        }
        if self.model == "ngram":
            return ka.models.NGramConfig(order=self.order, bottleneck=self.width, **shared)
        config_class, _ = ka.models.catalog[f"{self.model}_lm"]
        return config_class(
            layers=self.layers,
            residual=self.residual,
            normalise=self.normalise,
            recurrent_dropout=self.recurrent_dropout,
            **shared,
        )

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        sizes = {self.batch_size, self.evaluation_batch_size}
        if self.stateful and (self.accumulate > 1 or strategy.replicas > 1 or len(sizes) > 1):
            raise ValueError(
                "stateful needs accumulate=1, one replica and evaluation_batch_size=batch_size; "
                f"received accumulate={self.accumulate}, {strategy.replicas} replicas, "
                f"evaluation_batch_size={self.evaluation_batch_size}, batch_size={self.batch_size}."
            )

    def batches(self, tokenizer, ids, start_step):
        """Returns the batches to train on, from that update on, without end."""
        if not self.stateful:
            return super().batches(tokenizer, ids, start_step)
        return ka.text.contiguous_rows(ids, self.context, self.batch_size, start_step)

    def validation(self, tokenizer, ids):
        """Returns the batches to evaluate on."""
        if not self.stateful:
            return super().validation(tokenizer, ids)
        return ka.text.contiguous_rows(
            ids,
            self.context,
            self.batch_size,
            epochs=1,
            vocabulary_size=tokenizer.vocabulary_size,
        )

    def trained(self, model):
        """Returns the model to compile and fit, which trains the weights of `model`."""
        return ka.generation.stateful(model, self.batch_size) if self.stateful else model


if __name__ == "__main__":
    command(text_model.main, Settings, __doc__)
