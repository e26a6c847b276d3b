"""Trains an encoder to name texts or their words, or to find answers in them.

    python recipes/finetune_encoder.py --initial runs/encoder --data my.tsv --validation-data b.tsv
    python recipes/finetune_encoder.py --initial bert_folder --task tag --data my.tsv ...
    python recipes/finetune_encoder.py --initial bert_folder --task answer --data my.tsv ...
    python recipes/finetune_encoder.py --initial runs/encoder --from-scratch --data my.tsv ...

--initial is a run folder of pretrain_encoder.py, or a Hugging Face folder with its vocabulary. To
classify, a line is a label, a tab and a text; to tag, a word, a tab and its label, with an empty
line after each text. The report has accuracy, F1 and the calibration error of the validation data.
To answer, a line is a question, an answer and a text that holds it, with tabs between; where the
answer stands in it more than once, the characters before the right place may follow, after another
tab. A long text is read in windows. The report has exact match and F1 (Rajpurkar et al. 2016).
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
from parts.answered_questions import Answered
from parts.encoder import dataset_of, input_names, separators_between
from parts.encoder_tuning import EncoderTuningSettings, tune
from parts.labelled_texts import Classified, Tagged
from parts.training_run import command, fit, make_model, save_model

import keras_arch as ka
from keras_arch.objectives.crossentropy import IGNORED

KINDS = {"classify": Classified, "tag": Tagged, "answer": Answered}


@dataclasses.dataclass(frozen=True)
class Settings(EncoderTuningSettings):
    """Settings of a fine-tuning."""

    run_folder: pathlib.Path = pathlib.Path("runs/classes")  # Where everything goes
    task: Literal["classify", "tag", "answer"] = "classify"  # Name texts, or words, or find answers

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        if self.task != "answer":
            return
        if self.room < 1:
            raise ValueError(
                "context must be longer for a question and a text to have room; received "
                f"context={self.context}."
            )
        if self.label_smoothing:
            raise ValueError(
                "label_smoothing must be 0 for answers: most tokens have no chance; received "
                f"label_smoothing={self.label_smoothing}."
            )

    @property
    def kind(self):
        """The kind of texts."""
        return KINDS[self.task]

    @functools.cached_property
    def splits(self):
        """What to train on, and to evaluate on, as it was read."""
        found = [*map(self.kind.read, self.files)]
        names, validation_names = map(self.kind.names, found)
        if len(names) == 1:
            raise ValueError(f"data must have two labels or more; received {names[0]!r} alone.")
        unknown = {*validation_names} - {*names}
        if unknown:
            raise ValueError(
                f"validation_data must have labels of data; received {sorted(unknown)[0]!r} too."
            )
        return found

    @functools.cached_property
    def examples(self):
        """Of both splits what becomes a row, and its target, two lists."""
        return [self.kind.examples(split, self) for split in self.splits]

    @property
    def labels(self):
        """The names of the classes."""
        return self.kind.names(self.splits[0])

    @property
    def between(self):
        """Separators between a question and its text."""
        return separators_between(self.start.config)

    @property
    def room(self):
        """The tokens that the longest question, half of the context, leaves for a text."""
        return self.context - self.context // 2 - 2 - self.between

    def build(self, config):
        """Returns a new model, with the head of the task."""
        return self.kind.head(super().build(config), len(self.labels), self.dropout)

    def draw(self, examples, order):
        """Returns the function of a step to its batch: inputs, targets and weights.

        Args:
            examples: What becomes a row, and its target, two lists.
            order: Function of numbers `[batch_size]` to those of examples; -1: none.
        """
        tokenizer, names = self.start.tokenizer, input_names(self.start.config)

        def batch(step):
            places = order(np.arange(self.batch_size) + step * self.batch_size)
            chosen = [[values[i] for i in places] for values in examples]
            inputs, targets = self.kind.rows(tokenizer, *chosen, self.context, names)
            real = (places >= 0).reshape([-1] + [1] * (targets.ndim - 1))
            return inputs, targets, real & (targets != IGNORED)

        return batch

    def batches(self, start_step):
        """Returns the batches to train on: each row once an epoch, in another order each time."""
        train = self.examples[0]
        return dataset_of(self.draw(train, self.shuffled(len(train[0]))), start_step)

    def validation(self):
        """Returns the function of a step to its batch to evaluate on, and how many there are."""
        held = self.examples[1]
        count = len(held[0])
        draw = self.draw(held, lambda places: np.where(places < count, places, -1))
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
    if settings.labels:
        ka.training.write_text(folder / "labels.txt", "\n".join(settings.labels) + "\n")
    save_model(model, progress, folder)
    truth, logits = predict(model, map(draw, range(steps)))
    figures = settings.kind.report(settings, truth, logits, folder)
    export_model(folder.path, between=settings.between)
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
        **figures,
    )


def predict(model, batches):
    """Returns of all that is to be told the true class, int `[n]`, and logits `[n, C]`."""
    truth, logits = [], []
    for inputs, targets, weights in batches:
        logits.append(model.predict_on_batch(inputs)[weights].astype("float64"))
        truth.append(targets[weights])
    return np.concatenate(truth), np.concatenate(logits)


if __name__ == "__main__":
    command(main, Settings, __doc__)
