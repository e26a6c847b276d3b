"""What recipes/train_gpt.py can be asked, checked before it begins."""

import dataclasses
import pathlib
from typing import Literal

import keras_arch as ka
from keras_arch.checks import check_positive


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a run; each is a flag. `check` names what is wrong before anything is written."""

    run_folder: pathlib.Path = pathlib.Path("runs/demo")  # Where everything goes
    overwrite: bool = False  # Remove an earlier run in that folder and start again
    data: str = "shakespeare"  # A text file, a folder of .txt files, "shakespeare" or "python-docs"
    tokenizer: Literal["characters", "bytes", "byte_pair", "sentence_piece"] = (
        "characters"  # A token
    )
    vocabulary_size: int = 1024  # Tokens of a trained tokenizer; characters and bytes need none
    architecture: Literal["gpt2", "llama"] = "gpt2"  # A name in keras_arch.models.catalog
    layers: int = 4  # Decoder blocks
    heads: int = 4  # Attention heads; divide the width
    width: int = 128  # Width of the residual stream
    context: int = 64  # Tokens that the model sees at once
    dropout: float = 0.0  # Dropout rate
    initializer_range: float = 0.08  # Deviation of the initial matrices; about width ** -0.5
    batch_size: int = 12  # Windows per update, over all replicas and micro-batches
    accumulate: int = 1  # Micro-batches per update, to save memory; divides the batch size
    steps: int = 2000  # Updates
    evaluate_every: int = 250  # Updates between evaluations, each with a checkpoint
    evaluation_batch_size: int = 128  # Windows per batch of the evaluation
    patience: int = 0  # Evaluations without improvement before it stops; 0: never
    learning_rate: float = 1e-3  # Peak of the learning rate
    minimum_learning_rate: float = 1e-4  # Learning rate after the last update
    warmup_steps: int = 100  # Updates until the peak
    beta_2: float = 0.99  # Decay of AdamW's second moment
    weight_decay: float = 0.1  # AdamW's weight decay, on matrices
    clip: float = 1.0  # Largest norm of the gradient
    label_smoothing: float = 0.0  # Probability spread over the vocabulary in the training targets
    precision: Literal["float32", "bfloat16", "float16"] = "float32"  # Numbers to compute with
    strategy: Literal["auto", "one", "mirrored", "multiworker", "tpu"] = "auto"  # Devices
    jit_compile: Literal["auto", "yes", "no"] = "auto"  # XLA; auto: where it works
    samples: int = 4  # Texts to write in the end
    sample_tokens: int = 500  # Tokens of each text
    temperature: float = 0.8  # Temperature of the samples
    top_k: int = 200  # Most probable tokens that the samples choose from
    seed: int = 1337  # Seed of weights, data order, dropout and samples

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        ka.training.check_steps(self.steps, self.evaluate_every)
        if self.accumulate < 1 or self.batch_size % self.accumulate:
            raise ValueError(
                "accumulate must be positive and divide batch_size; received "
                f"accumulate={self.accumulate}, batch_size={self.batch_size}."
            )
        strategy.check(self.batch_size // self.accumulate, self.accumulate, self.precision)
        self.check_numbers(strategy.replicas)
        self.config(self.vocabulary_size)
        self.optimizer(self.schedule())
        self.loss()
        self.sampler()
        self.jit(strategy)

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
        least = {"byte_pair": 257, "sentence_piece": 260}.get(self.tokenizer, 1)
        if self.vocabulary_size < least:
            raise ValueError(
                f"vocabulary_size must be at least {least} for tokenizer={self.tokenizer!r}; "
                f"received vocabulary_size={self.vocabulary_size}."
            )
        if self.context < 2:
            raise ValueError(f"context must be at least 2; received context={self.context}.")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be in [0, 2**32); received seed={self.seed}.")
        if self.patience < 0:
            raise ValueError(f"patience must not be negative; received patience={self.patience}.")

    def config(self, vocabulary_size):
        """Returns the model's configuration."""
        config_class, _ = ka.models.catalog[self.architecture]
        return config_class(
            vocabulary_size=vocabulary_size,
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            hidden_width=4 * self.width,
            context_length=self.context,
            dropout=self.dropout,
            initializer_range=self.initializer_range,
        )

    def schedule(self):
        """Returns the learning rate schedule."""
        return ka.training.WarmupCosine(
            self.learning_rate,
            self.minimum_learning_rate,
            self.warmup_steps,
            self.steps,
            self.accumulate,
        )

    def optimizer(self, schedule):
        """Returns the optimizer."""
        return ka.training.AdamW(
            schedule,
            weight_decay=self.weight_decay,
            beta_2=self.beta_2,
            global_clipnorm=self.clip,
            gradient_accumulation_steps=self.accumulate if self.accumulate > 1 else None,
        )

    def loss(self):
        """Returns the loss of one micro-batch."""
        return ka.objectives.TokenCrossentropy(
            self.label_smoothing, reduction="sum" if self.accumulate > 1 else "token_mean"
        )

    def jit(self, strategy):
        """Returns what `compile` takes as `jit_compile`."""
        return strategy.jit_compile({"auto": "auto", "yes": True, "no": False}[self.jit_compile])

    def sampler(self):
        """Returns how the sample texts are drawn."""
        return ka.generation.Sample(
            ka.generation.Temperature(self.temperature), ka.generation.TopK(self.top_k)
        )
