"""Trains a small GPT on a text; leaves curves, samples, a SavedModel and a report in a run folder.

    KERAS_BACKEND=jax python recipes/train_gpt.py --data my.txt --width 256 --run-folder runs/mine

The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
The defaults are the demo: tiny Shakespeare by characters, nanoGPT's configuration for a CPU.
"""

import dataclasses
import json
import pathlib
import sys
from typing import Literal

import keras
import numpy as np
import tyro
from export_model import export_model

import keras_arch as ka


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a run; each is a flag."""

    run_folder: pathlib.Path = pathlib.Path("runs/demo")  # Where everything goes
    overwrite: bool = False  # Remove an earlier run in that folder and start again
    data: str = "shakespeare"  # A text file, a folder of .txt files, "shakespeare" or "python-docs"
    tokenizer: Literal["characters", "byte_pair"] = "characters"  # What a token is
    vocabulary_size: int = 1024  # Tokens of the byte-pair tokenizer; characters need none
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


def main(settings):
    """Trains, or goes on, or prints the report of a finished run."""
    ka.training.check_steps(settings.steps, settings.evaluate_every)
    strategy = ka.training.strategy(settings.strategy)
    if settings.accumulate < 1 or settings.batch_size % settings.accumulate:
        raise ValueError(
            "accumulate must be positive and divide batch_size; received "
            f"accumulate={settings.accumulate}, batch_size={settings.batch_size}."
        )
    strategy.check(
        settings.batch_size // settings.accumulate, settings.accumulate, settings.precision
    )
    asked = dataclasses.asdict(settings) | {"backend": keras.backend.backend()}
    folder_path, overwrite = asked.pop("run_folder"), asked.pop("overwrite")
    folder = ka.training.RunFolder(folder_path, asked, overwrite)
    report = folder.report() or run(settings, strategy, folder)
    print(json.dumps(report, indent=2))


def run(settings, strategy, folder):
    """Trains in the run folder and returns the report."""
    ka.training.keep_freed_memory()
    keras.utils.set_random_seed(settings.seed)
    tokenizer, train_ids, validation_ids = load_data(settings, folder)
    validation = ka.text.consecutive_windows(
        validation_ids, settings.context, settings.evaluation_batch_size, tokenizer.vocabulary_size
    )
    validation_tokens = len(validation_ids) - 1
    if settings.accumulate > 1:
        validation = ka.training.average_weights(validation, validation_tokens)

    def make_data(start_step):
        data = ka.text.windows(
            train_ids, settings.context, settings.batch_size, settings.seed, start_step
        )
        if settings.accumulate > 1:
            data = ka.training.micro_batches(data, settings.accumulate)
        return strategy.batches(data)

    schedule = make_schedule(settings)
    with strategy.scope():
        model = make_model(settings, strategy, schedule, tokenizer.vocabulary_size)
        progress, row = ka.training.fit(
            model,
            make_data,
            strategy.batches(validation),
            folder,
            schedule=schedule,
            steps=settings.steps,
            evaluate_every=settings.evaluate_every,
            micro_batches=settings.accumulate,
            patience=settings.patience,
        )
    title = f"{settings.architecture} on {settings.data}, {keras.backend.backend()}"
    ka.training.plot_curves(progress, folder / "curves.png", title)
    with ka.training.replacing(folder / "model.keras") as temporary:
        model.save(temporary)
    write_samples(settings, model, tokenizer, folder)
    export_model(folder.path, max_new_tokens=settings.context // 2)
    return ka.training.write_report(
        folder / "report.json",
        model,
        progress,
        seed=settings.seed,
        row=row,
        validation_tokens=validation_tokens,
        tokens_per_step=settings.batch_size * settings.context,
        validation_characters=len(tokenizer.decode(validation_ids[1:])),
        replicas=strategy.replicas,
    )


def load_data(settings, folder):
    """Returns the tokenizer, the first 90 % of the token ids and the rest."""
    files = ka.text.find_corpus(settings.data)
    text = ka.text.read_text(files)
    if (folder / "tokenizer" / "tokenizer.json").exists():
        tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    elif settings.tokenizer == "characters":
        tokenizer = ka.text.CharacterTokenizer.from_text(text)
    else:
        tokenizer = ka.text.BytePairTokenizer.train(files, settings.vocabulary_size)
    tokenizer.save(folder / "tokenizer")
    ids = np.array(tokenizer.encode(text), "int32")
    return tokenizer, *ka.text.split(ids, validation_fraction=0.1)


def make_schedule(settings):
    """Returns the learning rate schedule."""
    return ka.training.WarmupCosine(
        settings.learning_rate,
        settings.minimum_learning_rate,
        settings.warmup_steps,
        settings.steps,
        settings.accumulate,
    )


def make_model(settings, strategy, schedule, vocabulary_size):
    """Returns the compiled model."""
    config_class, build = ka.models.catalog[settings.architecture]
    config = config_class(
        vocabulary_size=vocabulary_size,
        width=settings.width,
        layers=settings.layers,
        heads=settings.heads,
        hidden_width=4 * settings.width,
        context_length=settings.context,
        dropout=settings.dropout,
        initializer_range=settings.initializer_range,
    )
    with ka.training.precision(settings.precision):
        model = build(config)
    accumulation = settings.accumulate if settings.accumulate > 1 else None
    optimizer = ka.training.AdamW(
        schedule,
        weight_decay=settings.weight_decay,
        beta_2=settings.beta_2,
        global_clipnorm=settings.clip,
        gradient_accumulation_steps=accumulation,
    )
    loss = ka.objectives.TokenCrossentropy(
        settings.label_smoothing, reduction="sum" if accumulation else "token_mean"
    )
    jit_compile = {"auto": "auto", "yes": True, "no": False}[settings.jit_compile]
    model.compile(
        optimizer,
        loss,
        weighted_metrics=[ka.objectives.TokenNats(name="nats")],
        jit_compile=strategy.jit_compile(jit_compile),
    )
    return model


def write_samples(settings, model, tokenizer, folder):
    """Writes texts longer than the context, each part given the last half context before it."""
    sample = ka.generation.Sample(
        ka.generation.Temperature(settings.temperature), ka.generation.TopK(settings.top_k)
    )
    half = settings.context // 2
    rows = [tokenizer.encode("\n") for _ in range(settings.samples)]
    for start in range(0, settings.sample_tokens, half):
        prompts = [row[-half:] for row in rows]
        new = ka.generate(model, prompts, half, sampler=sample, seed=settings.seed + start)
        rows = [row + ids.tolist() for row, ids in zip(rows, new.token_ids, strict=True)]
    texts = [tokenizer.decode(row[1 : settings.sample_tokens + 1]) for row in rows]
    text = "\n\n----\n\n".join(texts)
    ka.training.write_text(folder / "samples.txt", text + "\n")
    print(text)


if __name__ == "__main__":
    settings = tyro.cli(Settings, description=__doc__)
    try:
        with ka.training.interruptible():
            main(settings)
    except ka.training.Interrupted as stop:
        print(f"\n{stop}. To go on from the last checkpoint: python {' '.join(sys.argv)}")
        sys.exit(stop.code)
    except (ValueError, ka.training.NonFiniteLossError) as error:
        sys.exit(f"train_gpt: {error}")
