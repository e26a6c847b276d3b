"""Pretrains a BERT, a RoBERTa or an ELECTRA on a text, into a run folder.

    KERAS_BACKEND=jax python recipes/pretrain_encoder.py --data my.txt --run-folder runs/encoder
    python recipes/pretrain_encoder.py --model electra

Rows are windows of the text, drawn and masked anew for each batch (Devlin et al. 2019, section 3.1,
without the pairs of sentences; Liu et al. 2019, sections 4.1 and 4.2). A BERT tells what stands at
the masks; an ELECTRA, which of the tokens that a generator puts there are not the text's (Clark et
al. 2020), and it is that part which is kept: there is nothing of it to export.
recipes/finetune_encoder.py --initial goes on from here.
The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
"""

import dataclasses
import pathlib

import numpy as np
from parts import text_model
from parts.encoder import ROBERTA_TOKENS, EncoderSettings, dataset_of, input_names, pack
from parts.told_tokens import MaskedTokens, ReplacedTokens, put
from parts.training_run import command

import keras_arch as ka
from keras_arch.checks import check_fraction, check_positive

#: Of the rows to evaluate on: the same for all seeds of a run.
VALIDATION_SEED = 0


@dataclasses.dataclass(frozen=True)
class Settings(EncoderSettings, text_model.TextModelSettings):
    """Settings of a pretraining."""

    run_folder: pathlib.Path = pathlib.Path("runs/encoder")  # Where everything goes
    vocabulary_size: int = 8000  # Most tokens
    whole_words: bool = False  # Mask all tokens of a word or none
    rate: float = 0.15  # Share of the tokens that are to be told
    batch_size: int = 32  # Rows per update, over all replicas and micro-batches
    evaluation_batch_size: int = 32  # Rows per batch of the evaluation
    evaluation_batches: int = 8  # Batches of the evaluation, drawn once

    def check_numbers(self, replicas):
        """Raises ValueError for a number out of its range."""
        check_positive(evaluation_batches=self.evaluation_batches)
        check_fraction(rate=self.rate)
        if self.context < 4:
            raise ValueError(f"context must be at least 4; received context={self.context}.")
        if self.whole_words and self.model == "roberta":
            raise ValueError(
                f"whole_words needs a model that reads word pieces; received model={self.model!r}."
            )
        if self.model == "electra" and (self.accumulate > 1 or replicas > 1):
            raise ValueError(
                "model='electra' needs accumulate=1 and one replica; received "
                f"accumulate={self.accumulate}, {replicas} replicas."
            )
        super().check_numbers(replicas)

    @property
    def tokenizer(self):
        """What a token is."""
        return "byte_pair" if self.model == "roberta" else "word_piece"

    @property
    def told(self):
        """What the encoder is to tell."""
        return ReplacedTokens() if self.model == "electra" else MaskedTokens()

    def least_vocabulary(self):
        """Returns the least `vocabulary_size`: special tokens, and all bytes or a character."""
        return 256 + len(ROBERTA_TOKENS) if self.model == "roberta" else 7

    def make_tokenizer(self, files):
        """Returns a tokenizer of the texts."""
        options = {"special_tokens": ROBERTA_TOKENS} if self.model == "roberta" else {}
        return ka.text.TRAINABLE[self.tokenizer].train(files, self.vocabulary_size, **options)

    def build(self, config):
        """Returns a new model, with its head."""
        return self.told.build(super().build(config))

    def trained(self, model):
        """Returns the model to compile and fit, which trains the weights of `model`."""
        return self.told.trained(model, self.config(model.get_layer("tokens").vocabulary_size))

    def draw(self, tokenizer, ids, batch_size, seed):
        """Returns the function of a step to its masked rows: what `mask_for_mlm` returns."""
        names = input_names(self.config(tokenizer.vocabulary_size))
        window = self.context - 2
        if len(ids) < window:
            raise ValueError(
                f"data must hold at least context - 2 tokens in its first 90 % and in the rest; "
                f"received {len(ids)} tokens, context={self.context}."
            )
        options = {
            "mask_id": tokenizer.special_ids["mask"],
            "vocabulary_size": tokenizer.vocabulary_size,
            "special_ids": sorted(set(tokenizer.special_ids.values())),
            "rate": self.rate,
            **self.told.options,
            "continuation_ids": continuations(tokenizer) if self.whole_words else (),
        }

        def batch(step):
            random = np.random.default_rng([seed, step])
            begins = random.integers(len(ids) - window + 1, size=batch_size)
            rows = pack(tokenizer, [ids[i : i + window] for i in begins], self.context, names)
            inputs, *rest = ka.objectives.mask_for_mlm(
                rows["token_ids"], rows["valid"], random, **options
            )
            return (rows | inputs, *rest)

        return batch

    def batches(self, tokenizer, ids, start_step):
        """Returns the batches to train on, from that update on, without end."""
        draw = self.draw(tokenizer, ids, self.batch_size, self.seed)
        return dataset_of(lambda step: self.told.batch(*draw(step)), start_step)

    def evaluated(self, tokenizer, ids):
        """Returns the function of a step to its masked rows to evaluate on."""
        return self.draw(tokenizer, ids, self.evaluation_batch_size, VALIDATION_SEED)

    def validation(self, tokenizer, ids):
        """Returns the batches to evaluate on, each time the same."""
        draw = self.evaluated(tokenizer, ids)
        return dataset_of(lambda i: self.told.batch(*draw(i)), steps=self.evaluation_batches)

    def write_samples(self, model, tokenizer, validation_ids, folder):
        """Writes some rows: as the model reads them, what it makes of them, and as they were."""
        inputs, targets, weights = self.evaluated(tokenizer, validation_ids)(0)
        mask_id = tokenizer.special_ids["mask"]
        kinds = self.told.shown(model, inputs, targets, weights, mask_id)
        kinds["original"] = put(inputs, targets, weights)
        text_model.write_texts(
            [
                # Without the special tokens at its ends.
                "\n".join(
                    f"{name}: {tokenizer.decode(ids[i, 1:-1])}" for name, ids in kinds.items()
                )
                for i in range(min(self.samples, len(targets)))
            ],
            folder,
        )

    def export(self, folder, tokenizer):
        """Writes the SavedModel, which fills masks."""
        if self.model != "electra":
            super().export(folder, tokenizer)

    def max_new_tokens(self):
        """Returns how many tokens the SavedModel may write: it fills masks only."""
        return 1

    def figures(self, tokenizer, validation_ids):
        """Returns what `keras_arch.training.write_report` is told of the data."""
        draw, steps = self.evaluated(tokenizer, validation_ids), range(self.evaluation_batches)
        told = sum(int(self.told.batch(*draw(step))[2].sum()) for step in steps)
        rows = self.evaluation_batches * self.evaluation_batch_size
        return {"validation_tokens": told, "tokens_per_step": self.batch_size * told / rows}


def continuations(tokenizer):
    """Returns the ids of the word pieces that go on with a word."""
    pieces = enumerate(tokenizer.vocabulary)
    return [i for i, piece in pieces if piece.startswith("##") and piece != "##"]


if __name__ == "__main__":
    command(text_model.main, Settings, __doc__)
