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
import hashlib
import pathlib
from typing import Literal

import keras
from export_model import export_model
from training_run import (
    TrainingSettings,
    command,
    fit,
    make_model,
    save_model,
    train_in_folder,
)
from translation_report import (
    MAX_NEW_TOKENS,
    draw_alignments,
    evaluate,
    write_translations,
)

import keras_arch as ka
from keras_arch.checks import check_positive


@dataclasses.dataclass(frozen=True)
class Settings(TrainingSettings):
    """Settings of a translator."""

    run_folder: pathlib.Path = pathlib.Path("runs/translation")  # Where everything goes
    data: str = "multi30k"  # "multi30k" or a folder
    source: str = "en"  # Language that is read: the ending of its files
    target: str = "de"  # Language that is written
    vocabulary_size: int = 8000  # Tokens of both languages together
    model: Literal["recurrent", "transformer"] = "recurrent"  # Kind of model
    attention: Literal["additive", "dot", "general", "none"] | None = None  # Of a recurrent model
    width: int = 256  # Width of token vectors and of each state
    layers: int = 1  # Layers of encoder and decoder
    heads: int | None = None  # Attention heads of a Transformer; default 4
    dropout: float = 0.3  # Dropout rate
    tokens: int = 1536  # Positions of a batch on either side
    steps: int = 4500  # Updates
    evaluate_every: int = 500  # Updates between evaluations, each with a checkpoint
    patience: int = 4  # Evaluations without improvement before it stops; 0: never
    learning_rate: float = 2e-3  # Peak of the learning rate
    warmup_steps: int = 200  # Updates until the peak
    label_smoothing: float = 0.1  # Probability spread over the vocabulary in the training targets
    beams: int = 5  # Width of the beam search
    length_penalty: float = 1.0  # Its exponent of the length

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        strategy.check(strategy.replicas * self.accumulate, self.accumulate, self.precision)
        check_positive(tokens=self.tokens)
        only = {"heads": "transformer", "attention": "recurrent"}
        for name, model in only.items():
            if getattr(self, name) is not None and self.model != model:
                raise ValueError(
                    f"{name} is of model={model!r} alone; received {name}={getattr(self, name)!r}, "
                    f"model={self.model!r}."
                )
        if self.vocabulary_size < 258:
            raise ValueError(
                "vocabulary_size must be at least 258, all bytes, begin and end; received "
                f"vocabulary_size={self.vocabulary_size}."
            )
        self.config(self.vocabulary_size)
        self.search()

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

    def search(self):
        """Returns the beam search."""
        return ka.generation.BeamSearch(self.beams, length_penalty=self.length_penalty)


def main(settings):
    """Trains, or goes on, or prints the report of a finished run."""
    strategy = ka.training.strategy(settings.strategy)
    settings.check(strategy)
    splits = ka.text.find_pairs(settings.data, settings.source, settings.target)
    train_in_folder(
        settings,
        strategy,
        describe(settings, splits),
        lambda folder: run(settings, strategy, folder, *splits),
    )


def describe(settings, splits):
    """Returns which pairs a run trains on: where they come from, and a SHA-256 of them all."""
    digest = hashlib.sha256()
    for pairs in splits:
        for texts in pairs:
            digest.update("\n".join([*texts, ""]).encode())
    name = f"{pathlib.Path(settings.data).name} {settings.source}-{settings.target}"
    return {"files": [name], "sha256": digest.hexdigest()}


def run(settings, strategy, folder, train, validation, test):
    """Trains in the run folder; the chief worker writes the results and returns the report."""
    ka.training.keep_freed_memory()
    keras.utils.set_random_seed(settings.seed)
    tokenizer = load_tokenizer(settings, strategy.chief, folder, train)
    rows = strategy.replicas * settings.accumulate
    train_batches = batches(settings, tokenizer, train, settings.seed, rows)
    validation_batches = batches(settings, tokenizer, validation, None, rows)
    schedule = settings.schedule()
    model, trained = make_model(settings, strategy, schedule, tokenizer.vocabulary_size)
    progress, row = fit(
        settings,
        strategy,
        folder,
        trained,
        schedule,
        train_batches.dataset,
        validation_batches.dataset(epochs=1),
    )
    if not strategy.chief:
        return None
    save_model(model, progress, folder)
    figures, translations = evaluate(model, tokenizer, test, settings.search())
    write_translations(test, translations, folder)
    if settings.attention != "none":
        draw_alignments(model, tokenizer, test.sources[:3], settings.search(), folder)
    export_model(
        folder.path,
        max_new_tokens=MAX_NEW_TOKENS,
        beams=settings.beams,
        length_penalty=settings.length_penalty,
    )
    return ka.training.write_report(
        folder / "report.json",
        model,
        progress,
        seed=settings.seed,
        row=row,
        validation_tokens=sum(map(len, validation_batches.targets)) + len(validation.targets),
        tokens_per_step=settings.tokens,
        replicas=strategy.replicas,
        corpus=folder.settings["corpus"],
        **figures,
    )


def load_tokenizer(settings, chief, folder, train):
    """Returns the tokenizer of both languages: the run folder's, or a new one."""
    if folder.has_begun():
        return ka.text.load_tokenizer(folder / "tokenizer")
    tokenizer = ka.text.BytePairTokenizer.train(
        [*train.sources, *train.targets],
        settings.vocabulary_size,
        {"begin": "<s>", "end": "</s>"},
    )
    if chief:
        tokenizer.save(folder / "tokenizer")
    return tokenizer


def batches(settings, tokenizer, pairs, seed, multiple):
    """Returns the `PairBatches` of a split."""
    return ka.text.PairBatches(
        [tokenizer.encode(text) for text in pairs.sources],
        [tokenizer.encode(text) for text in pairs.targets],
        start_id=tokenizer.special_ids["begin"],
        end_id=tokenizer.special_ids["end"],
        tokens=settings.tokens,
        seed=seed,
        multiple=multiple,
    )


if __name__ == "__main__":
    command(main, Settings, __doc__)
