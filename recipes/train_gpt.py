"""Trains a small GPT on a text; leaves curves, samples, a SavedModel and a report in a run folder.

    KERAS_BACKEND=jax python recipes/train_gpt.py --data my.txt --width 256 --run-folder runs/mine

The backend is the environment variable KERAS_BACKEND: tensorflow (default), jax or torch. The same
command on an unfinished run folder goes on where it stood; on a finished one it prints the report.
The defaults are the demo: tiny Shakespeare by characters, nanoGPT's configuration for a CPU.
"""

import dataclasses
import hashlib
import json
import shlex
import sys

import keras
import numpy as np
import tyro
from export_model import export_model
from train_settings import Settings

import keras_arch as ka


def main(settings):
    """Trains, or goes on, or prints the report of a finished run."""
    strategy = ka.training.strategy(settings.strategy)
    settings.check(strategy)
    files = ka.text.find_corpus(settings.data)
    corpus = describe(files)
    asked = dataclasses.asdict(settings) | {"backend": keras.backend.backend(), "corpus": corpus}
    folder_path, overwrite = asked.pop("run_folder"), asked.pop("overwrite")
    with ka.training.shared_run_folder(strategy, folder_path, asked, overwrite) as folder:
        report = folder.report() or run(settings, strategy, folder, files)
    if strategy.chief:
        print(json.dumps(report, indent=2))


def describe(files):
    """Returns which text a run trains on: the files' names with their folders', and a SHA-256."""
    text = ka.text.read_text(files)
    return {
        "files": ["/".join(file.parts[-2:]) for file in files],
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def run(settings, strategy, folder, files):
    """Trains in the run folder; the chief worker writes the results and returns the report."""
    ka.training.keep_freed_memory()
    keras.utils.set_random_seed(settings.seed)
    tokenizer, train_ids, validation_ids = load_data(settings, strategy.chief, folder, files)
    validation = ka.text.consecutive_windows(
        validation_ids, settings.context, settings.evaluation_batch_size, tokenizer.vocabulary_size
    )
    validation_tokens = len(validation_ids) - 1
    if settings.accumulate > 1:
        validation = ka.training.average_weights(validation)

    def make_data(start_step):
        data = ka.text.windows(
            train_ids, settings.context, settings.batch_size, settings.seed, start_step
        )
        if settings.accumulate > 1:
            data = ka.training.micro_batches(data, settings.accumulate)
        return strategy.batches(data)

    schedule = settings.schedule()
    model, trained = make_model(settings, strategy, schedule, tokenizer.vocabulary_size)
    with strategy.scope():
        progress, row = ka.training.fit(
            trained,
            make_data,
            strategy.batches(validation),
            folder,
            schedule=schedule,
            steps=settings.steps,
            evaluate_every=settings.evaluate_every,
            micro_batches=settings.accumulate,
            patience=settings.patience,
            chief=strategy.chief,
        )
    if not strategy.chief:
        return None
    corpus = folder.settings["corpus"]
    names = ", ".join(corpus["files"][:3]) + (", ..." if len(files) > 3 else "")
    title = f"{settings.architecture} on {names}, {keras.backend.backend()}"
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
        corpus=corpus,
    )


def load_data(settings, chief, folder, files):
    """Returns the tokenizer, the first 90 % of the token ids and the rest."""
    text = ka.text.read_text(files)
    if folder.has_begun():
        tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    elif settings.tokenizer == "characters":
        tokenizer = ka.text.CharacterTokenizer.from_text(text)
    elif settings.tokenizer == "bytes":
        tokenizer = ka.text.ByteTokenizer()
    else:
        trainable = ka.text.TRAINABLE[settings.tokenizer]
        tokenizer = trainable.train(files, settings.vocabulary_size)
    if chief:
        tokenizer.save(folder / "tokenizer")
    ids = np.array(tokenizer.encode(text), "int32")
    return tokenizer, *ka.text.split(ids, validation_fraction=0.1)


def make_model(settings, strategy, schedule, vocabulary_size):
    """Returns the model, and the compiled one that trains its weights; mostly they are one."""
    _, build = ka.models.catalog[settings.architecture]
    with strategy.scope(), ka.training.precision(settings.precision):
        model = build(settings.config(vocabulary_size))
    trained = strategy.trainable(model)
    with strategy.scope():
        trained.compile(
            settings.optimizer(schedule),
            settings.loss(),
            weighted_metrics=[ka.objectives.TokenNats(name="nats")],
            jit_compile=settings.jit(strategy),
        )
    return model, trained


def write_samples(settings, model, tokenizer, folder):
    """Writes texts longer than the context, each part given the last half context before it."""
    half = settings.context // 2
    rows = [tokenizer.encode("\n") for _ in range(settings.samples)]
    for start in range(0, settings.sample_tokens, half):
        prompts = [row[-half:] for row in rows]
        new = ka.generate(
            model, prompts, half, sampler=settings.sampler(), seed=settings.seed + start
        )
        rows = [row + ids.tolist() for row, ids in zip(rows, new.token_ids, strict=True)]
    texts = [tokenizer.decode(row[1 : settings.sample_tokens + 1]) for row in rows]
    text = "\n\n----\n\n".join(texts)
    ka.training.write_text(folder / "samples.txt", text + "\n")
    print(text)


def command_to_go_on(arguments):
    """Returns the command that resumes the run which these arguments began."""
    kept = [a for a in arguments if a not in ("--overwrite", "--no-overwrite")]
    return shlex.join(["python", *kept])


if __name__ == "__main__":
    settings = tyro.cli(Settings, description=__doc__)
    try:
        with ka.training.interruptible():
            main(settings)
    except ka.training.Interrupted as stop:
        print(f"\n{stop}. To go on from the last checkpoint: {command_to_go_on(sys.argv)}")
        sys.exit(stop.code)
    except (ValueError, OSError, ka.training.NonFiniteLossError) as error:
        sys.exit(f"train_gpt: {error}")
