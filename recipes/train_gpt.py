"""Trains a small GPT on a text; leaves curves, samples, a SavedModel and a report in a run folder.

    KERAS_BACKEND=jax python recipes/train_gpt.py --data my.txt --width 256 --run-folder runs/mine

The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
The defaults are the demo: tiny Shakespeare by characters, nanoGPT's configuration for a CPU.
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
    """Settings of a GPT."""

    run_folder: pathlib.Path = pathlib.Path("runs/demo")  # Where everything goes
    architecture: Literal["gpt2", "llama"] = "gpt2"  # A name in keras_arch.models.catalog
    layers: int = 4  # Decoder blocks
    heads: int = 4  # Attention heads; divide the width
    width: int = 128  # Width of the residual stream
    dropout: float = 0.0  # Dropout rate
    initializer_range: float = 0.08  # Deviation of the initial matrices; about width ** -0.5

    def config(self, vocabulary_size):
        """Returns the model's configuration."""
        config_class, _ = ka.models.catalog[self.architecture]
        return config_class(
            vocabulary_size=vocabulary_size,
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            hidden_width=4 * self.width,
            context_length=self.context,
            dropout=self.dropout,
            initializer_range=self.initializer_range,
        )


if __name__ == "__main__":
    command(text_model.main, Settings, __doc__)
