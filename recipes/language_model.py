"""The road that the recipes for language models share: from a text to a finished run folder."""

import dataclasses
import hashlib
from typing import Literal

import keras
import numpy as np
from export_model import export_model
from training_run import TrainingSettings, fit, make_model, save_model, train_in_folder

import keras_arch as ka
from keras_arch.checks import check_positive

TOKENIZERS = Literal["characters", "bytes", "words", "byte_pair", "sentence_piece"]


@dataclasses.dataclass(frozen=True)
class LanguageModelSettings(TrainingSettings):
    """What every recipe for language models can be asked."""

    data: str = "shakespeare"  # A text file, a folder of .txt files, "shakespeare" or "python-docs"
    tokenizer: TOKENIZERS = "characters"  # What a token is
    vocabulary_size: int = 1024  # Most tokens; not for characters and bytes
    context: int = 64  # Tokens of a row
    batch_size: int = 12  # Rows per update, over all replicas and micro-batches
    evaluation_batch_size: int = 128  # Rows per batch of the evaluation
    samples: int = 4  # Texts to write in the end
    sample_tokens: int = 500  # Tokens of each text
    temperature: float = 0.8  # Temperature of the samples
    top_k: int = 200  # Most probable tokens that the samples choose from

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        if self.accumulate < 1 or self.batch_size % self.accumulate:
            raise ValueError(
                "accumulate must be positive and divide batch_size; received "
                f"accumulate={self.accumulate}, batch_size={self.batch_size}."
            )
        strategy.check(self.batch_size // self.accumulate, self.accumulate, self.precision)
        super().check(strategy)
        self.check_numbers(strategy.replicas)
        self.config(self.vocabulary_size)
        self.sampler()

    def check_numbers(self, replicas):
        """Raises ValueError for a number out of its range."""
        check_positive(
            evaluation_batch_size=self.evaluation_batch_size,
            samples=self.samples,
            sample_tokens=self.sample_tokens,
        )
        if self.evaluation_batch_size % replicas:
            raise ValueError(
                f"evaluation_batch_size must be a multiple of the {replicas} replicas; received "
                f"evaluation_batch_size={self.evaluation_batch_size}."
            )
        least = {"byte_pair": 257, "sentence_piece": 260, "words": 6}.get(self.tokenizer, 1)
        if self.vocabulary_size < least:
            raise ValueError(
                f"vocabulary_size must be at least {least} for tokenizer={self.tokenizer!r}; "
                f"received vocabulary_size={self.vocabulary_size}."
            )
        if self.context < 2:
            raise ValueError(f"context must be at least 2; received context={self.context}.")

    def batches(self, ids, start_step):
        """Returns the batches to train on, from that update on, without end."""
        return ka.text.windows(ids, self.context, self.batch_size, self.seed, start_step)

    def validation(self, ids, vocabulary_size):
        """Returns the batches to evaluate on."""
        return ka.text.consecutive_windows(
            ids, self.context, self.evaluation_batch_size, vocabulary_size
        )

    def sampler(self):
        """Returns how the sample texts are drawn."""
        return ka.generation.Sample(
            ka.generation.Temperature(self.temperature), ka.generation.TopK(self.top_k)
        )


def main(settings):
    """Trains, or goes on, or prints the report of a finished run."""
    strategy = ka.training.strategy(settings.strategy)
    settings.check(strategy)
    files = ka.text.find_corpus(settings.data)
    train_in_folder(
        settings, strategy, describe(files), lambda folder: run(settings, strategy, folder, files)
    )


def describe(files):
    """Returns which text a run trains on: the files' names with their folders', and a SHA-256."""
    text = ka.text.read_text(files)
    return {
        "files": ["/".join(file.parts[-2:]) for file in files],
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def run(settings, strategy, folder, files):
    """Trains in the run folder; the chief worker writes the results and returns the report."""
    ka.training.keep_freed_memory()
    keras.utils.set_random_seed(settings.seed)
    tokenizer, train_ids, validation_ids = load_data(settings, strategy.chief, folder, files)
    validation = settings.validation(validation_ids, tokenizer.vocabulary_size)
    schedule = settings.schedule()
    model, trained = make_model(settings, strategy, schedule, tokenizer.vocabulary_size)
    progress, row = fit(
        settings,
        strategy,
        folder,
        trained,
        schedule,
        lambda start_step: settings.batches(train_ids, start_step),
        validation,
    )
    if not strategy.chief:
        return None
    save_model(model, progress, folder)
    write_samples(settings, model, tokenizer, folder)
    export_model(folder.path, max_new_tokens=settings.context // 2)
    return ka.training.write_report(
        folder / "report.json",
        model,
        progress,
        seed=settings.seed,
        row=row,
        validation_tokens=len(validation_ids) - 1,
        tokens_per_step=settings.batch_size * settings.context,
        validation_characters=len(tokenizer.decode(validation_ids[1:])),
        replicas=strategy.replicas,
        corpus=folder.settings["corpus"],
    )


def load_data(settings, chief, folder, files):
    """Returns the tokenizer, the first 90 % of the token ids and the rest."""
    if folder.has_begun():
        tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    else:
        tokenizer = make_tokenizer(settings.tokenizer, files, settings.vocabulary_size)
    if chief:
        tokenizer.save(folder / "tokenizer")
    return tokenizer, *split_text(files, tokenizer)


def make_tokenizer(name, files, vocabulary_size):
    """Returns a tokenizer of the texts, of one of the kinds that settings name."""
    if name == "characters":
        return ka.text.CharacterTokenizer.from_text(ka.text.read_text(files))
    if name == "bytes":
        return ka.text.ByteTokenizer()
    if name == "words":
        return ka.text.WordPieceTokenizer.from_words(files, vocabulary_size)
    return ka.text.TRAINABLE[name].train(files, vocabulary_size)


def split_text(files, tokenizer):
    """Returns the first 90 % of the texts' token ids, and the rest."""
    ids = np.array(tokenizer.encode(ka.text.read_text(files)), "int32")
    return ka.text.split(ids, validation_fraction=0.1)


def write_samples(settings, model, tokenizer, folder):
    """Writes texts longer than the context, each part given the last half context before it."""
    half = settings.context // 2
    rows = [tokenizer.encode("\n") for _ in range(settings.samples)]
    for start in range(0, settings.sample_tokens, half):
        prompts = [row[-half:] for row in rows]
        new = ka.generate(
            model, prompts, half, sampler=settings.sampler(), seed=settings.seed + start
        )
        rows = [row + ids.tolist() for row, ids in zip(rows, new.token_ids, strict=True)]
    texts = [tokenizer.decode(row[1 : settings.sample_tokens + 1]) for row in rows]
    text = "\n\n----\n\n".join(texts)
    ka.training.write_text(folder / "samples.txt", text + "\n")
    print(text)
