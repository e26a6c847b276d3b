"""Pretrains a T5 or a BART on a text, into a run folder: the first half of its way to a task.

    KERAS_BACKEND=jax python recipes/pretrain_seq2seq.py --data my.txt --run-folder runs/pretrained
    python recipes/pretrain_seq2seq.py --model bart --rate 0.3 --mean-length 3

T5 learns to write the spans that were dropped from its source (Raffel et al. 2020, section 3.1.4).
BART learns to restore a text whose sentences were shuffled and whose spans were each replaced by a
mask (Lewis et al. 2020, section 2.2). recipes/finetune_seq2seq.py --initial-run goes on from here.
The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
"""

import dataclasses
import pathlib
from typing import Literal

import numpy as np
import tensorflow as tf
from export_model import export_model
from parts import denoising, text_model
from parts.encoder_decoder import SPECIAL_TOKENS, EncoderDecoderSettings
from parts.pair_report import predict_ids, without_end
from parts.training_run import command

import keras_arch as ka
from keras_arch.checks import check_positive

#: Of the pairs to evaluate on: the same for all seeds of a run.
VALIDATION_SEED = 0


@dataclasses.dataclass(frozen=True)
class Settings(EncoderDecoderSettings, text_model.TextModelSettings):
    """Settings of a pretraining."""

    run_folder: pathlib.Path = pathlib.Path("runs/pretrained")  # Where everything goes
    tokenizer: Literal["byte_pair", "sentence_piece"] = "byte_pair"  # What a token is
    vocabulary_size: int = 8000  # Most tokens
    rate: float | None = None  # Share of the tokens that drops out; default 0.15, BART's 0.3
    mean_length: float = 3.0  # Mean tokens of a span
    batch_size: int = 32  # Pairs per update, over all replicas and micro-batches
    evaluation_batch_size: int = 32  # Pairs per batch of the evaluation
    evaluation_batches: int = 8  # Batches of the evaluation, drawn once
    dropout: float = 0.0  # Dropout rate

    def check_numbers(self, replicas):
        """Raises ValueError for a number out of its range."""
        check_positive(evaluation_batches=self.evaluation_batches)
        if self.context < 3:
            raise ValueError(f"context must be at least 3; received context={self.context}.")
        self.noise()
        super().check_numbers(replicas)

    def noise(self):
        """Returns how a window of the text becomes a pair."""
        kinds = {"t5": (denoising.DroppedSpans, 0.15), "bart": (denoising.MaskedSpans, 0.3)}
        noise, rate = kinds[self.model]
        return noise(self.context, rate if self.rate is None else self.rate, self.mean_length)

    def special_tokens(self):
        """Returns the special tokens, role to name."""
        return SPECIAL_TOKENS | self.noise().special_tokens()

    def least_vocabulary(self):
        """Returns the least `vocabulary_size`: all bytes and the special tokens."""
        least = {"byte_pair": 256, "sentence_piece": 258}
        return least[self.tokenizer] + len(self.special_tokens())

    def make_tokenizer(self, files):
        """Returns a tokenizer of the texts."""
        train = ka.text.TRAINABLE[self.tokenizer].train
        return train(files, self.vocabulary_size, special_tokens=self.special_tokens())

    def draw(self, tokenizer, ids):
        """Returns the function that draws a pair from token ids."""
        noise = self.noise()
        return ka.text.window_pairs(ids, noise.window, noise.corrupt(tokenizer))

    def pairs(self, tokenizer, ids, **options):
        """Returns batches of pairs drawn from token ids, without end."""
        source_length, target_length = self.noise().lengths
        return ka.text.pair_stream(
            self.draw(tokenizer, ids),
            start_id=tokenizer.start_id,
            end_id=tokenizer.special_ids["end"],
            source_length=source_length,
            target_length=target_length,
            end_sources=True,
            **options,
        )

    def batches(self, tokenizer, ids, start_step):
        """Returns the batches to train on, from that update on, without end."""
        options = {"batch_size": self.batch_size, "seed": self.seed, "start_step": start_step}
        return self.pairs(tokenizer, ids, **options)

    def validation(self, tokenizer, ids):
        """Returns the batches to evaluate on, each time the same."""
        options = {"batch_size": self.evaluation_batch_size, "seed": VALIDATION_SEED}
        pairs = self.pairs(tokenizer, ids, **options).take(self.evaluation_batches)
        # Keras warns of the end of a dataset whose length it does not know.
        return pairs.apply(tf.data.experimental.assert_cardinality(self.evaluation_batches))

    def write_samples(self, model, tokenizer, validation_ids, folder):
        """Writes what the model makes of some sources, and what they were made of."""
        draw = self.draw(tokenizer, validation_ids)
        random = np.random.default_rng([VALIDATION_SEED, 0])  # As the first batch is drawn.
        pairs = [draw(random) for _ in range(self.samples)]
        sources = [source.tolist() + self.source_end(tokenizer) for source, _ in pairs]
        found = predict_ids(model, tokenizer, sources, self.max_new_tokens())
        written = [without_end(tokenizer, ids) for ids in found]
        fill = self.noise().fill(tokenizer)
        text_model.write_texts(
            [
                f"source:   {tokenizer.decode(source)}\n"
                f"written:  {tokenizer.decode(ids)}\n"
                f"restored: {tokenizer.decode(fill(source, ids))}\n"
                f"original: {tokenizer.decode(fill(source, target))}"
                for (source, target), ids in zip(pairs, written, strict=True)
            ],
            folder,
        )

    def export(self, folder, tokenizer):
        """Writes the SavedModel."""
        end = self.source_end(tokenizer)
        export_model(folder.path, max_new_tokens=self.max_new_tokens(), source_end=end)

    def max_new_tokens(self):
        """Returns how many tokens a target may have."""
        return self.noise().lengths[1] - 1

    def figures(self, tokenizer, validation_ids):
        """Returns what `keras_arch.training.write_report` is told of the data."""
        # Targets of BART have as many tokens as the window, those of T5 as their spans.
        _, target_length = self.noise().lengths
        rows = self.evaluation_batches * self.evaluation_batch_size
        return {
            "validation_tokens": rows * target_length,
            "tokens_per_step": self.batch_size * target_length,
        }


if __name__ == "__main__":
    command(text_model.main, Settings, __doc__)
