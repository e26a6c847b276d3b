"""Pretrains a BERT or a RoBERTa on a text by masked tokens, into a run folder.

    KERAS_BACKEND=jax python recipes/pretrain_encoder.py --data my.txt --run-folder runs/encoder
    python recipes/pretrain_encoder.py --model roberta --rate 0.2

Rows are windows of the text, drawn and masked anew for each batch (Devlin et al. 2019, section 3.1,
without the pairs of sentences; Liu et al. 2019, sections 4.1 and 4.2).
recipes/finetune_encoder.py --initial goes on from here.
The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
"""

import dataclasses
import pathlib

import numpy as np
import text_model
from encoder import ROBERTA_TOKENS, EncoderSettings, dataset_of, input_names, pack
from training_run import command

import keras_arch as ka
from keras_arch.checks import check_fraction, check_positive

#: Of the rows to evaluate on: the same for all seeds of a run.
VALIDATION_SEED = 0


@dataclasses.dataclass(frozen=True)
class Settings(EncoderSettings, text_model.TextModelSettings):
    """Settings of a pretraining."""

    run_folder: pathlib.Path = pathlib.Path("runs/encoder")  # Where everything goes
    vocabulary_size: int = 8000  # Most tokens
    whole_words: bool = False  # Mask all tokens of a word or none; for bert
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
        if self.whole_words and self.model != "bert":
            raise ValueError(
                f"whole_words needs word pieces, model='bert'; received model={self.model!r}."
            )
        super().check_numbers(replicas)

    @property
    def tokenizer(self):
        """What a token is."""
        return {"bert": "word_piece", "roberta": "byte_pair"}[self.model]

    def least_vocabulary(self):
        """Returns the least `vocabulary_size`: special tokens, and all bytes or a character."""
        return {"bert": 7, "roberta": 256 + len(ROBERTA_TOKENS)}[self.model]

    def make_tokenizer(self, files):
        """Returns a tokenizer of the texts."""
        options = {"special_tokens": ROBERTA_TOKENS} if self.model == "roberta" else {}
        return ka.text.TRAINABLE[self.tokenizer].train(files, self.vocabulary_size, **options)

    def build(self, config):
        """Returns a new model, with the head that tells masked tokens."""
        return ka.models.masked_lm(super().build(config))

    def draw(self, tokenizer, ids, batch_size, seed):
        """Returns the function of a step to its batch: inputs, targets and weights."""
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
        return dataset_of(self.draw(tokenizer, ids, self.batch_size, self.seed), start_step)

    def evaluated(self, tokenizer, ids):
        """Returns the function of a step to its batch to evaluate on."""
        return self.draw(tokenizer, ids, self.evaluation_batch_size, VALIDATION_SEED)

    def validation(self, tokenizer, ids):
        """Returns the batches to evaluate on, each time the same."""
        return dataset_of(self.evaluated(tokenizer, ids), steps=self.evaluation_batches)

    def write_samples(self, model, tokenizer, validation_ids, folder):
        """Writes some rows: as the model reads them, as it fills them, and as they were."""
        inputs, targets, weights = self.evaluated(tokenizer, validation_ids)(0)
        logits = model.predict_on_batch(inputs)
        texts = []
        for i in range(min(self.samples, len(targets))):
            row = inputs["token_ids"][i]
            places = inputs["masked_positions"][i][weights[i]]
            filled, original = row.copy(), row.copy()
            filled[places] = logits[i].argmax(axis=-1)[weights[i]]
            original[places] = targets[i][weights[i]]
            kinds = {"masked:   ": row, "filled:   ": filled, "original: ": original}
            # Without the special tokens at its ends.
            texts.append("\n".join(n + tokenizer.decode(ids[1:-1]) for n, ids in kinds.items()))
        text_model.write_texts(texts, folder)

    def max_new_tokens(self):
        """Returns how many tokens the SavedModel may write: it fills masks only."""
        return 1

    def figures(self, tokenizer, validation_ids):
        """Returns what `keras_arch.training.write_report` is told of the data."""
        draw = self.evaluated(tokenizer, validation_ids)
        told = sum(int(draw(step)[2].sum()) for step in range(self.evaluation_batches))
        return {
            "validation_tokens": told,
            # The share is kept on average.
            "tokens_per_step": self.batch_size * (self.context - 2) * self.rate,
        }


def continuations(tokenizer):
    """Returns the ids of the word pieces that go on with a word."""
    pieces = enumerate(tokenizer.vocabulary)
    return [i for i, piece in pieces if piece.startswith("##") and piece != "##"]


if __name__ == "__main__":
    command(text_model.main, Settings, __doc__)
