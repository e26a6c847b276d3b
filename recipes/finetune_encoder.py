"""Trains an encoder to name texts or their words, from a pretrained one or its shape alone.

    python recipes/finetune_encoder.py --initial runs/encoder --data my.tsv --validation-data b.tsv
    python recipes/finetune_encoder.py --initial bert_folder --task tag --data my.tsv ...
    python recipes/finetune_encoder.py --initial runs/encoder --from-scratch --data my.tsv ...

--initial is a run folder of pretrain_encoder.py, or a Hugging Face folder with its vocabulary. To
classify, a line is a label, a tab and a text; to tag, a word, a tab and its label, with an empty
line after each text. The report has accuracy, F1 and the calibration error of the validation data.
The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
"""

import csv
import dataclasses
import functools
import io
import pathlib
from typing import Literal

import class_report
import keras
import numpy as np
from encoder import dataset_of, input_names
from export_model import export_model
from initial_encoder import copy_weights, read_initial
from labelled_texts import KINDS
from training_run import (
    TrainingSettings,
    command,
    digests,
    fit,
    make_model,
    save_model,
    train_in_folder,
)

import keras_arch as ka
from keras_arch.checks import check_positive, check_rate
from keras_arch.objectives.crossentropy import IGNORED

#: Layers that begin anew.
NEW = ("pooler", "classes")


@dataclasses.dataclass(frozen=True)
class Settings(TrainingSettings):
    """Settings of a fine-tuning."""

    run_folder: pathlib.Path = pathlib.Path("runs/classes")  # Where everything goes
    task: Literal["classify", "tag"] = "classify"  # Name texts, or their words
    data: str = "train.tsv"  # Labelled texts to train on
    validation_data: str = "validation.tsv"  # Others to evaluate on
    initial: str = "runs/encoder"  # Where encoder and tokenizer come from
    from_scratch: bool = False  # Take its shape and tokenizer, but not its weights
    context: int = 128  # Tokens of a row, the special ones included; the rest of a text is cut
    dropout: float = 0.1  # Dropout rate
    batch_size: int = 32  # Texts per update, over all replicas and micro-batches
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
        strategy.check(self.batch_size // self.accumulate, self.accumulate, self.precision)
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
    def kind(self):
        """The kind of labelled texts."""
        return KINDS[self.task]

    @property
    def files(self):
        """The paths of the texts to train on, and to evaluate on."""
        return pathlib.Path(self.data), pathlib.Path(self.validation_data)

    @functools.cached_property
    def splits(self):
        """`(texts, labels)` to train on, and to evaluate on."""
        found = [*map(self.kind.read, self.files)]
        unknown = {label for row in found[1][1] for label in row} - {*self.names_in(found[0])}
        if unknown:
            raise ValueError(
                f"validation_data must have labels of data; received {sorted(unknown)[0]!r} too."
            )
        return found

    @staticmethod
    def names_in(split):
        """Returns the labels of texts, sorted."""
        return sorted({label for row in split[1] for label in row})

    @property
    def labels(self):
        """The names of the classes."""
        return self.names_in(self.splits[0])

    def config(self, vocabulary_size):
        """Returns the encoder's configuration: the initial one's, with this context."""
        return dataclasses.replace(
            self.start.config, context_length=self.context, dropout=self.dropout
        )

    def build(self, config):
        """Returns a new model, with the head of the task."""
        return self.kind.head(super().build(config), len(self.labels), self.dropout)

    def initialise(self, model):
        """Gives the model the initial weights."""
        if not self.from_scratch:
            copy_weights(self.start.model, model, NEW)

    def draw(self, split, order):
        """Returns the function of a step to its batch: inputs, targets and weights.

        Args:
            split: `(texts, labels)`.
            order: Function of numbers `[batch_size]` to those of texts; -1: none.
        """
        names, numbers = input_names(self.start.config), {x: i for i, x in enumerate(self.labels)}
        texts, labels = split

        def batch(step):
            places = order(np.arange(self.batch_size) + step * self.batch_size)
            inputs, targets = self.kind.rows(
                self.start.tokenizer,
                [texts[i] for i in places],
                [[numbers[label] for label in labels[i]] for i in places],
                self.context,
                names,
            )
            real = (places >= 0).reshape([-1] + [1] * (targets.ndim - 1))
            return inputs, targets, real & (targets != IGNORED)

        return batch

    def batches(self, start_step):
        """Returns the batches to train on: each text once an epoch, in another order each time."""
        count = len(self.splits[0][0])

        @functools.lru_cache(maxsize=2)
        def order_of(epoch):
            return np.random.default_rng([self.seed, epoch]).permutation(count)

        def order(places):
            return np.array([order_of(int(i) // count)[i % count] for i in places])

        return dataset_of(self.draw(self.splits[0], order), start_step)

    def validation(self):
        """Returns the function of a step to its batch to evaluate on, and how many there are."""
        count = len(self.splits[1][0])
        draw = self.draw(self.splits[1], lambda places: np.where(places < count, places, -1))
        return draw, -(-count // self.batch_size)


def main(settings):
    """Trains, or goes on, or prints the report of a finished run."""
    strategy = ka.training.strategy(settings.strategy)
    settings.check(strategy)
    files = [*settings.files, *settings.start.files]
    data = {"files": [settings.files[0].name], "labels": settings.labels, "sha256": digests(files)}
    train_in_folder(settings, strategy, data, lambda folder: run(settings, strategy, folder))


def run(settings, strategy, folder):
    """Trains in the run folder; the chief worker writes the results and returns the report."""
    ka.training.keep_freed_memory()
    keras.utils.set_random_seed(settings.seed)
    draw, steps = settings.validation()
    schedule = settings.schedule()
    tokenizer = settings.start.tokenizer
    model, trained = make_model(settings, strategy, schedule, tokenizer.vocabulary_size)
    validation = dataset_of(draw, steps=steps)
    progress, row = fit(settings, strategy, folder, trained, schedule, settings.batches, validation)
    if not strategy.chief:
        return None
    tokenizer.save(folder / "tokenizer")
    ka.training.write_text(folder / "labels.txt", "\n".join(settings.labels) + "\n")
    save_model(model, progress, folder)
    truth, probabilities = predict(model, map(draw, range(steps)))
    write_plots(truth, probabilities, settings.labels, folder)
    export_model(folder.path)
    return ka.training.write_report(
        folder / "report.json",
        model,
        progress,
        seed=settings.seed,
        row=row,
        validation_tokens=len(truth),
        tokens_per_step=settings.batch_size * settings.context,
        replicas=strategy.replicas,
        corpus=folder.settings["corpus"],
        **class_report.figures(truth, probabilities, settings.labels),
    )


def predict(model, batches):
    """Returns of all that is to be told the true class, int `[n]`, and probabilities `[n, C]`."""
    truth, logits = [], []
    for inputs, targets, weights in batches:
        logits.append(model.predict_on_batch(inputs)[weights].astype("float64"))
        truth.append(targets[weights])
    logits = np.concatenate(logits)
    chances = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.concatenate(truth), chances / chances.sum(axis=-1, keepdims=True)


def write_plots(truth, probabilities, labels, folder):
    """Writes the plots, and `predictions.tsv`: each true class, and what was found instead."""
    found, best = probabilities.argmax(axis=-1), probabilities.max(axis=-1)
    counts = class_report.confusion(truth, found, len(labels))
    class_report.plot_confusion(counts, labels, folder / "confusion.png")
    class_report.plot_reliability(best, found == truth, folder / "reliability.png")
    content = io.StringIO()
    writer = csv.writer(content, delimiter="\t", lineterminator="\n")
    writer.writerow(["true", "found", "probability"])
    writer.writerows(
        (labels[i], labels[k], f"{p:.6f}") for i, k, p in zip(truth, found, best, strict=True)
    )
    ka.training.write_text(folder / "predictions.tsv", content.getvalue())


if __name__ == "__main__":
    command(main, Settings, __doc__)
