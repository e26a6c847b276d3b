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

import dataclasses
import functools
import pathlib
from typing import Literal

import keras
import numpy as np
from export_model import export_model
from parts import class_report
from parts.encoder import dataset_of, input_names
from parts.encoder_tuning import EncoderTuningSettings, tune
from parts.labelled_texts import KINDS
from parts.training_run import command, fit, make_model, save_model

import keras_arch as ka
from keras_arch.objectives.crossentropy import IGNORED


@dataclasses.dataclass(frozen=True)
class Settings(EncoderTuningSettings):
    """Settings of a fine-tuning."""

    run_folder: pathlib.Path = pathlib.Path("runs/classes")  # Where everything goes
    task: Literal["classify", "tag"] = "classify"  # Name texts, or their words

    @property
    def kind(self):
        """The kind of labelled texts."""
        return KINDS[self.task]

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

    def build(self, config):
        """Returns a new model, with the head of the task."""
        return self.kind.head(super().build(config), len(self.labels), self.dropout)

    def draw(self, split, order):
        """Returns the function of a step to its batch: inputs, targets and weights.

        Args:
            split: `(texts, labels)`.
            order: Function of numbers `[batch_size]` to those of texts; -1: none.
        """
        names, numbers = input_names(self.start.config), {x: i for i, x in enumerate(self.labels)}
        tokenizer, length = self.start.tokenizer, self.context
        texts = [self.kind.encode(tokenizer, text, length) for text in split[0]]
        labels = [[numbers[label] for label in row] for row in split[1]]

        def batch(step):
            places = order(np.arange(self.batch_size) + step * self.batch_size)
            chosen = [[rows[i] for i in places] for rows in (texts, labels)]
            inputs, targets = self.kind.rows(tokenizer, *chosen, length, names)
            real = (places >= 0).reshape([-1] + [1] * (targets.ndim - 1))
            return inputs, targets, real & (targets != IGNORED)

        return batch

    def batches(self, start_step):
        """Returns the batches to train on: each text once an epoch, in another order each time."""
        order = self.shuffled(len(self.splits[0][0]))
        return dataset_of(self.draw(self.splits[0], order), start_step)

    def validation(self):
        """Returns the function of a step to its batch to evaluate on, and how many there are."""
        count = len(self.splits[1][0])
        draw = self.draw(self.splits[1], lambda places: np.where(places < count, places, -1))
        return draw, -(-count // self.batch_size)

    def describe(self):
        """Returns what a run can only go on with: data, labels and the initial encoder."""
        return super().describe() | {"labels": self.labels}


def main(settings):
    """Trains, or goes on, or prints the report of a finished run."""
    tune(settings, run)


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
    class_report.write_plots(truth, probabilities, settings.labels, folder.path)
    export_model(folder.path)
    return ka.training.write_report(
        folder / "report.json",
        model,
        progress,
        seed=settings.seed,
        row=row,
        validation_tokens=len(truth),
        # Those that are read: a text may have one target alone.
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


if __name__ == "__main__":
    command(main, Settings, __doc__)
