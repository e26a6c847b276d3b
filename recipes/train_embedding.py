"""Trains an encoder to give texts that belong together vectors that are alike.

    python recipes/train_embedding.py --initial runs/encoder --data my.tsv --validation-data b.tsv
    python recipes/train_embedding.py --initial bert_folder --batch-size 64 --data my.tsv ...
    python recipes/train_embedding.py --initial bert_folder --negatives 4 --data my.tsv ...

A line is a text, a tab and one that belongs to it: a question and its answer, a title and its text.
Each text is to find its own among those of its batch (Henderson et al. 2017, section 4.4); with
--negatives among some more that are wrong, drawn from those that the encoder takes for the most
alike, which are searched anew every --refresh-every updates (Xiong et al. 2021, section 4). The
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
from parts.encoder_tuning import tune
from parts.hard_negatives import SEARCHES, HardNegativeSettings, MinedNegatives
from parts.training_run import command, fit, make_model, save_model

import keras_arch as ka
from keras_arch.checks import check_positive_number
from keras_arch.text.tabbed_pairs import read_tabbed_pairs


@dataclasses.dataclass(frozen=True)
class Settings(HardNegativeSettings):
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
        """Returns the model from a batch of pairs to how alike each first is to all seconds.

        And to its own hard negatives: logits `[B, B + negatives]`.
        """
        first, second = (_inputs(model, which) for which in ("first", "second"))
        inputs = [*first.values(), *second.values()]
        queries, documents = model(first), model(second)
        cosines = keras.ops.matmul(queries, keras.ops.transpose(documents))
        if self.negatives:
            wrong = _inputs(model, "negative", self.negatives)
            rows = {
                name: ka.layers.FoldChoices(name=f"{name}_rows")(x) for name, x in wrong.items()
            }
            documents = keras.ops.reshape(model(rows), (-1, self.negatives, queries.shape[-1]))
            own = keras.ops.einsum("bd,bnd->bn", queries, documents)
            cosines = keras.ops.concatenate([cosines, own], axis=1)
            inputs += wrong.values()
        named = {x.name: x for x in inputs}
        return keras.Model(named, cosines * self.scale, name="in_batch")

    def rows(self, texts):
        """Returns the model's inputs for texts, arrays `[B, T]` by name."""
        tokenizer, names = self.start.tokenizer, input_names(self.start.config)
        ids = [tokenizer.encode(text)[: self.context] for text in texts]
        return pack(tokenizer, ids, self.context, names)

    def draw(self, which, order, table=None):
        """Returns the function of a step to its batch: inputs, targets and weights.

        Args:
            which: 0, the pairs to train on; 1, those to evaluate on.
            order: Function of numbers `[batch_size]` to those of pairs.
            table: Wrong texts of each pair, int `[n, count]`, of which some are drawn.
        """
        pairs, documents = self.splits[which], self.paired[which].texts

        def batch(step):
            places = order(np.arange(self.batch_size) + step * self.batch_size)
            inputs = {
                f"{kind}_{name}": x
                for kind, texts in zip(("first", "second"), pairs, strict=True)
                for name, x in self.rows([texts[i] for i in places]).items()
            }
            if table is not None:
                random = np.random.default_rng([self.seed, 1, step])
                wrong = random.permuted(table[places], axis=1)[:, : self.negatives]
                rows = self.rows([documents[i] for i in wrong.ravel()])
                shape = (*wrong.shape, self.context)
                inputs |= {f"negative_{name}": x.reshape(shape) for name, x in rows.items()}
            own = np.arange(self.batch_size, dtype="int32")
            return inputs, own, np.ones(self.batch_size, bool)

        return batch

    def batches(self, start_step, table=None):
        """Returns the batches to train on: each pair once an epoch, in another order each time."""
        order = self.shuffled(len(self.splits[0].sources))
        return dataset_of(self.draw(0, order, table), start_step)

    def validation(self):
        """Returns the batches to evaluate on, all full; their wrong texts are random ones."""
        steps = len(self.splits[1].sources) // self.batch_size
        table = self.paired[1].random(self.negatives, self.seed) if self.negatives else None
        return dataset_of(self.draw(1, lambda places: places, table), steps=steps)

    def mine(self, model):
        """Returns the hard negatives of the pairs to train on, int `[n, negatives_from]`."""
        texts = self.paired[0]
        both = (vectors(model, self, x) for x in (self.splits[0].sources, texts.texts))
        return texts.hardest(*both, self.negatives_from, SEARCHES[self.index])


def _inputs(model, prefix, *shape):
    """Returns inputs like the model's, by its names, maybe with an axis more before the time."""
    return {
        x.name: keras.Input((*shape, *x.shape[1:]), dtype=x.dtype, name=f"{prefix}_{x.name}")
        for x in model.inputs
    }


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
    mined = MinedNegatives(folder, settings.refresh_every, lambda: settings.mine(model))

    def batches(start_step):
        return settings.batches(start_step, mined.at(start_step) if settings.negatives else None)

    for stage in settings.stages(folder):
        progress, row = fit(stage, strategy, folder, trained, schedule, batches, validation)
        if progress.stopped:
            break
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
        tokens_per_step=(2 + settings.negatives) * settings.batch_size * settings.context,
        corpus=folder.settings["corpus"],
        **retrieval(queries, documents),
    )


def vectors(model, settings, texts):
    """Returns the vectors of texts, float `[n, D]`."""
    size = settings.batch_size
    # The last batch is as large as the others: one program is compiled.
    filled = [*texts, *texts[:1] * (-len(texts) % size)]
    rows = (settings.rows(filled[i : i + size]) for i in range(0, len(filled), size))
    return np.concatenate([model.predict_on_batch(row) for row in rows])[: len(texts)]


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
