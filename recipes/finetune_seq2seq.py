"""Trains a T5 or a BART on pairs of texts, from a pretrained run or from scratch.

    python recipes/finetune_seq2seq.py --initial-run runs/pretrained --data pairs.tsv
    python recipes/finetune_seq2seq.py --initial-run runs/pretrained --from-scratch --data pairs.tsv
    python recipes/finetune_seq2seq.py --model bart --width 128 --data my_folder

A pair is a line: source, tab, target. Of one file the last tenth is to test on and the tenth before
it to validate on; a folder holds train.tsv, val.tsv and test.tsv. The report has BLEU and ROUGE.
The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
"""

import dataclasses
import json
import pathlib
from typing import Literal

import keras
from parts import pair_model
from parts.encoder_decoder import SPECIAL_TOKENS, EncoderDecoderSettings
from parts.rouge import rouge
from parts.training_run import command, digest

import keras_arch as ka
from keras_arch.text.pair_batches import LENGTHS

#: What an initial run decides, and what it is without one.
SHAPE = ("model", "width", "layers", "heads", "initializer_range", "context")
DEFAULTS = {name: getattr(EncoderDecoderSettings, name) for name in SHAPE}
DEFAULTS |= {"vocabulary_size": pair_model.PairModelSettings.vocabulary_size}


@dataclasses.dataclass(frozen=True)
class Settings(EncoderDecoderSettings, pair_model.PairModelSettings):
    """Settings of a fine-tuning."""

    run_folder: pathlib.Path = pathlib.Path("runs/finetuned")  # Where everything goes
    data: str = "pairs.tsv"  # A file of pairs or a folder
    prefix: str = ""  # What each source begins with, such as "summarise: "
    initial_run: str | None = None  # Run folder to take model and tokenizer from
    from_scratch: bool = False  # Take its shape and tokenizer, but not its weights
    model: Literal["t5", "bart"] | None = None  # Kind of model; default the initial run's, or t5
    width: int | None = None  # Width of the residual stream; default the initial run's, or 256
    layers: int | None = None  # Blocks of each half; default the initial run's, or 3
    heads: int | None = None  # Attention heads; default the initial run's, or 4
    initializer_range: float | None = None  # As in pretraining; default the initial run's, or 0.05
    context: int | None = None  # Most tokens of a side; default the initial run's, or 128
    vocabulary_size: int | None = None  # Most tokens; default the initial run's, or 8000
    steps: int = 2000  # Updates
    learning_rate: float = 5e-4  # Peak of the learning rate

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        if self.context < 2:
            raise ValueError(f"context must be at least 2; received context={self.context}.")
        if self.from_scratch and self.initial_run is None:
            raise ValueError(
                "from_scratch is for the shape of an initial run; received from_scratch=True, "
                "initial_run=None."
            )

    def find_pairs(self):
        """Returns the pairs to train on, to validate on and to test on."""
        return ka.text.find_tabbed_pairs(self.data)

    def source_text(self, source):
        """Returns what the model reads of a source."""
        return self.prefix + source

    def describe(self):
        """Returns what a run can only go on with, besides the pairs: the initial run's files."""
        found = {"files": [pathlib.Path(self.data).name]}
        if self.initial_run is not None:
            files = sorted(p for p in self.initial("tokenizer").iterdir() if p.is_file())
            files = [self.initial("model.keras"), *files]
            found["initial_run"] = {file.name: digest(file) for file in files}
        return found

    def initial(self, name):
        """Returns the path of a file of the initial run."""
        return pathlib.Path(self.initial_run) / name

    def make_tokenizer(self, train):
        """Returns the initial run's tokenizer, or one of the pairs."""
        if self.initial_run is None:
            return super().make_tokenizer(train)
        return ka.text.load_tokenizer(self.initial("tokenizer"))

    def initialise(self, model):
        """Gives the model the initial run's weights."""
        if self.initial_run is None or self.from_scratch:
            return
        initial = keras.saving.load_model(self.initial("model.keras"), compile=False)
        try:
            # Keras' `load_weights` passes over what does not fit.
            model.set_weights(initial.get_weights())
        except ValueError as error:
            raise ValueError(
                "initial_run must hold the model of its settings and its tokenizer; received "
                f"initial_run={self.initial_run!r}: {error}"
            ) from error

    def max_new_tokens(self):
        """Returns the most tokens of a prediction."""
        return self.context - 1

    def lengths(self):
        """Returns what rows of tokens are padded to, the longest last."""
        more = range(LENGTHS[-1] + 64, self.context, 64)
        return *(n for n in (*LENGTHS, *more) if n < self.context), self.context

    def figures(self, model, tokenizer, test, predictions, folder):
        """Returns ROUGE of the predictions, by the kind of search."""
        return {"rouge": {name: rouge(texts, test.targets) for name, texts in predictions.items()}}


def main(settings):
    """Trains, or goes on, or prints the report of a finished run."""
    pair_model.main(shaped(settings))


def shaped(settings):
    """Returns the settings with the shape of the initial run, or else with the default one.

    Raises:
        ValueError: If there is no such run, or it is not of an encoder-decoder, or the settings
            ask for another shape.
    """
    shape = DEFAULTS if settings.initial_run is None else read_shape(settings.initial_run)
    given = {name: getattr(settings, name) for name in shape if getattr(settings, name) is not None}
    # A T5 has no table of positions.
    free = shape if settings.initial_run is None else {"context"} if shape["model"] == "t5" else ()
    for name, value in given.items():
        if name not in free and value != shape[name]:
            raise ValueError(
                f"{name} is the initial run's, {shape[name]!r}; received {name}={value!r}, "
                f"initial_run={settings.initial_run!r}."
            )
    return dataclasses.replace(settings, **(shape | given))


def read_shape(folder):
    """Returns the shape of the model in a run folder, by the names of its settings."""
    folder = pathlib.Path(folder)
    for name in ("settings.json", "model.keras", "tokenizer"):
        if not (folder / name).exists():
            raise ValueError(
                f"initial_run must be a finished run; received initial_run={str(folder)!r}, "
                f"which has no {name}."
            )
    asked = json.loads((folder / "settings.json").read_text())["settings"]
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    wanted = {*SHAPE, "vocabulary_size"} <= asked.keys()
    if not wanted or not SPECIAL_TOKENS.keys() <= tokenizer.special_ids.keys():
        raise ValueError(
            "initial_run must be of pretrain_seq2seq.py or finetune_seq2seq.py; received "
            f"initial_run={str(folder)!r}."
        )
    return {name: asked[name] for name in DEFAULTS}


if __name__ == "__main__":
    command(main, Settings, __doc__)
