"""Trains an encoder to give texts that belong together vectors that are alike.

    python recipes/train_embedding.py --initial runs/encoder --data my.tsv --validation-data b.tsv
    python recipes/train_embedding.py --initial bert_folder --batch-size 64 --data my.tsv ...

A line is a text, a tab and one that belongs to it: a question and its answer, a title and its text.
Each text is to find its own among those of its batch (Henderson et al. 2017, section 4.4). The
report has the share of the validation texts that find their own first, or among the first ten, of
all of them, and the mean reciprocal rank. --initial is as in finetune_encoder.py.
The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
"""

import dataclasses
import functools
import math
import pathlib

import keras
import numpy as np
from export_model import export_model
from parts.encoder import dataset_of, input_names, pack
from parts.encoder_tuning import EncoderTuningSettings, tune
from parts.training_run import command, fit, make_model, save_model

import keras_arch as ka
from keras_arch.checks import check_positive_number
from keras_arch.text.tabbed_pairs import read_tabbed_pairs


@dataclasses.dataclass(frozen=True)
class Settings(EncoderTuningSettings):
    """Settings of a training of embeddings."""

    run_folder: pathlib.Path = pathlib.Path("runs/embedding")  # Where everything goes
    scale: float = 20.0  # What cosines are multiplied by before the softmax

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        check_positive_number(scale=self.scale)
        if math.isinf(self.scale):
            raise ValueError(f"scale must be finite; received scale={self.scale}.")
        if self.batch_size < 2 or self.accumulate > 1 or strategy.replicas > 1:
            raise ValueError(
                "batch_size must be 2 or more, accumulate 1, and all on one device, for a text is "
                f"compared with its whole batch; received batch_size={self.batch_size}, "
                f"accumulate={self.accumulate}, {strategy.replicas} replicas."
            )
        for path, pairs in zip(self.files, self.splits, strict=True):
            if len(pairs.sources) < self.batch_size:
                raise ValueError(
                    f"{path} must hold a batch of pairs; received {len(pairs.sources)}, "
                    f"batch_size={self.batch_size}."
                )

    @functools.cached_property
    def splits(self):
        """The pairs to train on, and to evaluate on."""
        return [*map(read_tabbed_pairs, self.files)]

    def build(self, config):
        """Returns a new model, from a row to its vector."""
        return ka.models.sentence_embedding(super().build(config))

    def trained(self, model):
        """Returns the model from a batch of pairs to how alike each first is to all seconds."""
        inputs, vectors = {}, []
        for which in ("first", "second"):
            own = {
                x.name: keras.Input(x.shape[1:], dtype=x.dtype, name=f"{which}_{x.name}")
                for x in model.inputs
            }
            vectors.append(model(own))
            inputs |= {x.name: x for x in own.values()}
        cosines = keras.ops.matmul(vectors[0], keras.ops.transpose(vectors[1]))
        return keras.Model(inputs, cosines * self.scale, name="in_batch")

    def rows(self, texts):
        """Returns the model's inputs for texts, arrays `[B, T]` by name."""
        tokenizer, names = self.start.tokenizer, input_names(self.start.config)
        ids = [tokenizer.encode(text)[: self.context] for text in texts]
        return pack(tokenizer, ids, self.context, names)

    def draw(self, pairs, order):
        """Returns the function of a step to its batch: inputs, targets and weights."""

        def batch(step):
            places = order(np.arange(self.batch_size) + step * self.batch_size)
            inputs = {
                f"{which}_{name}": x
                for which, texts in zip(("first", "second"), pairs, strict=True)
                for name, x in self.rows([texts[i] for i in places]).items()
            }
            own = np.arange(self.batch_size, dtype="int32")
            return inputs, own, np.ones(self.batch_size, bool)

        return batch

    def batches(self, start_step):
        """Returns the batches to train on: each pair once an epoch, in another order each time."""
        train = self.splits[0]
        return dataset_of(self.draw(train, self.shuffled(len(train.sources))), start_step)

    def validation(self):
        """Returns the batches to evaluate on, all full."""
        pairs = self.splits[1]
        steps = len(pairs.sources) // self.batch_size
        return dataset_of(self.draw(pairs, lambda places: places), steps=steps)


def main(settings):
    """Trains, or goes on, or prints the report of a finished run."""
    tune(settings, run)


def run(settings, strategy, folder):
    """Trains in the run folder, writes the results and returns the report."""
    ka.training.keep_freed_memory()
    keras.utils.set_random_seed(settings.seed)
    schedule, validation = settings.schedule(), settings.validation()
    tokenizer = settings.start.tokenizer
    model, trained = make_model(settings, strategy, schedule, tokenizer.vocabulary_size)
    progress, row = fit(settings, strategy, folder, trained, schedule, settings.batches, validation)
    tokenizer.save(folder / "tokenizer")
    save_model(model, progress, folder)
    export_model(folder.path)
    queries, documents = (vectors(model, settings, texts) for texts in settings.splits[1])
    return ka.training.write_report(
        folder / "report.json",
        model,
        progress,
        seed=settings.seed,
        row=row,
        validation_tokens=settings.batch_size * len(validation),
        # Those that are read: a text has one target.
        tokens_per_step=2 * settings.batch_size * settings.context,
        corpus=folder.settings["corpus"],
        **retrieval(queries, documents),
    )


def vectors(model, settings, texts):
    """Returns the vectors of texts, float `[n, D]`."""
    size = settings.batch_size
    rows = (settings.rows(texts[i : i + size]) for i in range(0, len(texts), size))
    return np.concatenate([model.predict_on_batch(row) for row in rows])


def retrieval(queries, documents):
    """Returns how well each query finds its own document among all, by exact search.

    Args:
        queries: Unit vectors, float `[n, D]`.
        documents: Those that belong to them, `[n, D]`.

    Returns:
        `recall_at_1`, `recall_at_10` and `mean_reciprocal_rank`; of equal documents a query's own
        comes last.
    """
    cosines = queries @ documents.T
    ranks = (cosines >= np.diag(cosines)[:, None]).sum(axis=1)
    return {
        "recall_at_1": float((ranks <= 1).mean()),
        "recall_at_10": float((ranks <= 10).mean()),
        "mean_reciprocal_rank": float((1 / ranks).mean()),
    }


if __name__ == "__main__":
    command(main, Settings, __doc__)
