"""The road that the recipes which train on a text share: from the text to a finished run folder."""

import dataclasses
import hashlib
from typing import NamedTuple

import keras
import numpy as np
from export_model import export_model
from parts.training_run import TrainingSettings, fit, make_model, save_model, train_in_folder

import keras_arch as ka
from keras_arch.checks import check_positive


@dataclasses.dataclass(frozen=True)
class TextModelSettings(TrainingSettings):
    """What every recipe that trains on a text can be asked.

    A recipe adds `tokenizer`, and the methods that raise NotImplementedError.
    """

    data: str = "shakespeare"  # A text file, a folder of .txt files, "shakespeare" or "python-docs"
    vocabulary_size: int = 1024  # Most tokens; not for characters and bytes
    context: int = 64  # Tokens of a row
    batch_size: int = 12  # Rows per update, over all replicas and micro-batches
    evaluation_batch_size: int = 128  # Rows per batch of the evaluation
    samples: int = 4  # Texts to write in the end

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        if self.accumulate < 1 or self.batch_size % self.accumulate:
            raise ValueError(
                "accumulate must be positive and divide batch_size; received "
                f"accumulate={self.accumulate}, batch_size={self.batch_size}."
            )
        self.check_devices(strategy, self.batch_size // self.accumulate)
        super().check(strategy)
        self.check_numbers(strategy.replicas)
        self.config(self.vocabulary_size)

    def check_numbers(self, replicas):
        """Raises ValueError for a number out of its range."""
        check_positive(evaluation_batch_size=self.evaluation_batch_size, samples=self.samples)
        if self.evaluation_batch_size % replicas:
            raise ValueError(
                f"evaluation_batch_size must be a multiple of the {replicas} replicas; received "
                f"evaluation_batch_size={self.evaluation_batch_size}."
            )
        if self.context < 2:
            raise ValueError(f"context must be at least 2; received context={self.context}.")
        least = self.least_vocabulary()
        if self.vocabulary_size < least:
            raise ValueError(
                f"vocabulary_size must be at least {least} for tokenizer={self.tokenizer!r}; "
                f"received vocabulary_size={self.vocabulary_size}."
            )

    def least_vocabulary(self):
        """Returns the least `vocabulary_size`."""
        raise NotImplementedError

    def make_tokenizer(self, files):
        """Returns a tokenizer of the texts."""
        raise NotImplementedError

    def batches(self, tokenizer, ids, start_step):
        """Returns the batches to train on, from that update on, without end."""
        raise NotImplementedError

    def validation(self, tokenizer, ids):
        """Returns the batches to evaluate on."""
        raise NotImplementedError

    def write_samples(self, model, tokenizer, validation_ids, folder):
        """Writes `samples.txt`: what the model can do."""
        raise NotImplementedError

    def export(self, folder, tokenizer):
        """Writes the SavedModel."""
        export_model(folder.path, max_new_tokens=self.max_new_tokens())

    def max_new_tokens(self):
        """Returns how many tokens the SavedModel may write."""
        raise NotImplementedError

    def figures(self, tokenizer, validation_ids):
        """Returns what `keras_arch.training.write_report` is told of the data."""
        raise NotImplementedError


class Data(NamedTuple):
    """What a run trains and is evaluated on."""

    tokenizer: object
    train_ids: np.ndarray
    validation_ids: np.ndarray


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
    model, progress, row, data = train(settings, strategy, folder, files)
    if not strategy.chief:
        return None
    save_model(model, progress, folder)
    settings.write_samples(model, data.tokenizer, data.validation_ids, folder)
    settings.export(folder, data.tokenizer)
    return report(settings, strategy, folder, model, progress, row, data)


def train(settings, strategy, folder, files):
    """Trains in the run folder; returns the model, its Progress, the log row and the Data."""
    ka.training.keep_freed_memory()
    keras.utils.set_random_seed(settings.seed)
    data = load_data(settings, strategy.chief, folder, files)
    validation = settings.validation(data.tokenizer, data.validation_ids)
    schedule = settings.schedule()
    model, trained = make_model(settings, strategy, schedule, data.tokenizer.vocabulary_size)
    progress, row = fit(
        settings,
        strategy,
        folder,
        trained,
        schedule,
        lambda start_step: settings.batches(data.tokenizer, data.train_ids, start_step),
        validation,
    )
    return model, progress, row, data


def report(settings, strategy, folder, model, progress, row, data):
    """Writes `report.json` and returns its content."""
    return ka.training.write_report(
        folder / "report.json",
        model,
        progress,
        seed=settings.seed,
        row=row,
        replicas=strategy.replicas,
        corpus=folder.settings["corpus"],
        **settings.figures(data.tokenizer, data.validation_ids),
    )


def load_data(settings, chief, folder, files):
    """Returns the Data of the texts, with the run folder's tokenizer, or a new one."""
    if folder.has_begun():
        tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    else:
        tokenizer = settings.make_tokenizer(files)
    if chief:
        tokenizer.save(folder / "tokenizer")
    return Data(tokenizer, *split_text(files, tokenizer))


def split_text(files, tokenizer):
    """Returns the first 90 % of the texts' token ids, and the rest."""
    ids = np.array(tokenizer.encode(ka.text.read_text(files)), "int32")
    return ka.text.split(ids, validation_fraction=0.1)


def write_texts(texts, folder):
    """Writes texts into `samples.txt`, and prints them."""
    text = "\n\n----\n\n".join(texts)
    ka.training.write_text(folder / "samples.txt", text + "\n")
    print(text)
