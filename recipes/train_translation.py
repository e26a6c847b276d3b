"""Trains a translator on pairs of sentences, into a run folder, and prints its BLEU.

    KERAS_BACKEND=jax python recipes/train_translation.py --run-folder runs/translation
    KERAS_BACKEND=jax python recipes/train_translation.py --model transformer --layers 3 \
        --learning-rate 1e-3 --warmup-steps 1000
    python recipes/train_translation.py --data my_folder --source en --target fr

A folder holds train.en, train.de, val.en, ..., test.de: a sentence a line. The backend is the
environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same command on an
unfinished run folder goes on where it stood; on a finished one it prints the report.
"""

import dataclasses
import pathlib
from typing import Literal

from parts import pair_model
from parts.pair_report import draw_alignments
from parts.training_run import command

import keras_arch as ka
from keras_arch.text.pair_batches import LENGTHS


@dataclasses.dataclass(frozen=True)
class Settings(pair_model.PairModelSettings):
    """Settings of a translator."""

    run_folder: pathlib.Path = pathlib.Path("runs/translation")  # Where everything goes
    data: str = "multi30k"  # "multi30k" or a folder
    source: str = "en"  # Language that is read: the ending of its files
    target: str = "de"  # Language that is written
    model: Literal["recurrent", "transformer"] = "recurrent"  # Kind of model
    attention: Literal["additive", "dot", "general", "none"] | None = None  # Of a recurrent model
    width: int = 256  # Width of token vectors and of each state
    layers: int = 1  # Layers of encoder and decoder
    heads: int | None = None  # Attention heads of a Transformer; default 4
    dropout: float = 0.3  # Dropout rate
    steps: int = 4500  # Updates
    evaluate_every: int = 500  # Updates between evaluations, each with a checkpoint
    learning_rate: float = 2e-3  # Peak of the learning rate
    warmup_steps: int = 200  # Updates until the peak

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        only = {"heads": "transformer", "attention": "recurrent"}
        for name, model in only.items():
            if getattr(self, name) is not None and self.model != model:
                raise ValueError(
                    f"{name} is of model={model!r} alone; received {name}={getattr(self, name)!r}, "
                    f"model={self.model!r}."
                )

    def config(self, vocabulary_size):
        """Returns the model's configuration."""
        shared = {
            "vocabulary_size": vocabulary_size,
            "width": self.width,
            "encoder_layers": self.layers,
            "decoder_layers": self.layers,
            "dropout": self.dropout,
            "tied": True,
        }
        if self.model == "transformer":
            return ka.models.TransformerConfig(
                heads=4 if self.heads is None else self.heads,
                norm_order="pre",
                initializer_range=self.width**-0.5,
                **shared,
            )
        shared |= {"encoder_width": self.width, "decoder_width": self.width}
        if self.attention == "none":
            return ka.models.Seq2SeqConfig(**shared)
        return ka.models.AttentionSeq2SeqConfig(attention=self.attention or "additive", **shared)

    def find_pairs(self):
        """Returns the pairs to train on, to validate on and to test on."""
        return ka.text.find_pairs(self.data, self.source, self.target)

    def describe(self):
        """Returns what a run can only go on with, besides the pairs: where they come from."""
        return {"files": [f"{pathlib.Path(self.data).name} {self.source}-{self.target}"]}

    def max_new_tokens(self):
        """Returns the most tokens of a translation."""
        return 64

    def lengths(self):
        """Returns what rows of tokens are padded to."""
        return LENGTHS

    def figures(self, model, tokenizer, test, predictions, folder):
        """Draws where the model looked in three sources; there are no more figures."""
        if self.attention != "none":
            longest = self.max_new_tokens()
            sources, search = test.sources[:3], self.search()
            draw_alignments(model, tokenizer, sources, search, longest, folder)
        return {}


if __name__ == "__main__":
    command(pair_model.main, Settings, __doc__)
