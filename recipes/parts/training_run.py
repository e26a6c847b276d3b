"""What every recipe that trains shares: settings, the model's compilation, the command line."""

import dataclasses
import hashlib
import json
import pathlib
import shlex
import sys
from typing import Literal

import keras
import tyro

import keras_arch as ka
from keras_arch.checks import check_positive, check_positive_number, check_rate


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training; each is a flag. `check` names what is wrong, before it begins.

    A recipe adds the fields of its data and models, and `config`.
    """

    run_folder: pathlib.Path = pathlib.Path("runs/mine")  # Where everything goes
    overwrite: bool = False  # Remove an earlier run in that folder and start again
    accumulate: int = 1  # Micro-batches per update, to save memory
    steps_per_execution: int = 1  # Micro-batches per call of the compiled step; 1 on PyTorch
    steps: int = 2000  # Updates
    evaluate_every: int = 250  # Updates between evaluations, each with a checkpoint
    patience: int = 0  # Evaluations without improvement before it stops; 0: never
    learning_rate: float = 1e-3  # Peak of the learning rate
    minimum_learning_rate: float = 1e-4  # Learning rate after the last update
    warmup_steps: int | None = None  # Updates until the peak; default a tenth of all, at most 100
    beta_2: float = 0.99  # Decay of AdamW's second moment
    weight_decay: float = 0.1  # AdamW's weight decay, on matrices
    clip: float = 1.0  # Largest norm of the gradient
    ema: float = 0.0  # Decay of the weights' average, which is evaluated and saved; 0: the weights
    label_smoothing: float = 0.0  # Probability spread over the vocabulary in the training targets
    precision: Literal["float32", "bfloat16", "float16"] = "float32"  # Numbers to compute with
    strategy: Literal["auto", "one", "mirrored", "multiworker", "tpu"] = "auto"  # Devices
    jit_compile: Literal["auto", "yes", "no"] = "auto"  # XLA; auto: where it works
    seed: int = 1337  # Seed of weights, data order, dropout and samples

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        ka.training.check_steps(self.steps, self.evaluate_every)
        check_positive(accumulate=self.accumulate)
        ka.training.check_executions(self.steps_per_execution, self.evaluate_every, self.accumulate)
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be in [0, 2**32); received seed={self.seed}.")
        check_positive_number(learning_rate=self.learning_rate)
        if not 0 <= self.warmup() < self.steps:
            raise ValueError(
                "warmup_steps must be at least 0 and less than steps; received "
                f"warmup_steps={self.warmup_steps}, steps={self.steps}."
            )
        if self.patience < 0:
            raise ValueError(f"patience must not be negative; received patience={self.patience}.")
        check_rate(ema=self.ema)
        self.optimizer(self.schedule())
        self.loss()
        self.jit(strategy)

    def check_devices(self, strategy, batch_size):
        """Raises ValueError for what fails on these devices with that many rows at once."""
        strategy.check(batch_size, self.accumulate, self.precision, self.steps_per_execution)

    def config(self, vocabulary_size):
        """Returns the model's configuration."""
        raise NotImplementedError

    def build(self, config):
        """Returns a new model."""
        return ka.models.builder(config)(config)

    def initialise(self, model):
        """Gives a new model the weights to start from, where those it has will not do."""

    def trained(self, model):
        """Returns the model to compile and fit, which trains the weights of `model`."""
        return model

    def warmup(self):
        """Returns the updates until the peak of the learning rate."""
        return min(100, self.steps // 10) if self.warmup_steps is None else self.warmup_steps

    def schedule(self):
        """Returns the learning rate schedule."""
        return ka.training.WarmupCosine(
            self.learning_rate,
            self.minimum_learning_rate,
            self.warmup(),
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
            use_ema=self.ema > 0,
            ema_momentum=self.ema,
        )

    def loss(self):
        """Returns the loss of one micro-batch."""
        return ka.objectives.TokenCrossentropy(
            self.label_smoothing, reduction="sum" if self.accumulate > 1 else "token_mean"
        )

    def jit(self, strategy):
        """Returns what `compile` takes as `jit_compile`."""
        return strategy.jit_compile({"auto": "auto", "yes": True, "no": False}[self.jit_compile])


def train_in_folder(settings, strategy, data, run):
    """Opens the run folder and trains, or goes on; prints the report, of a finished run too.

    Args:
        settings: A `TrainingSettings` that was checked.
        strategy: `keras_arch.training.Strategy`.
        data: JSON-like, what the run trains on; a run can only go on with the same.
        run: Function of the run folder that trains and returns the report.
    """
    asked = dataclasses.asdict(settings) | {"backend": keras.backend.backend(), "corpus": data}
    folder_path, overwrite = asked.pop("run_folder"), asked.pop("overwrite")
    with ka.training.shared_run_folder(strategy, folder_path, asked, overwrite) as folder:
        report = folder.report() or run(folder)
    if strategy.chief:
        print(json.dumps(report, indent=2))


def make_model(settings, strategy, schedule, vocabulary_size):
    """Returns the model, and the compiled one that trains its weights; mostly they are one."""
    config = settings.config(vocabulary_size)
    with strategy.scope(), ka.training.precision(settings.precision):
        model = settings.build(config)
        settings.initialise(model)
    trained = settings.trained(strategy.trainable(model))
    with strategy.scope():
        trained.compile(
            settings.optimizer(schedule),
            settings.loss(),
            weighted_metrics=[ka.objectives.TokenNats(name="nats")],
            jit_compile=settings.jit(strategy),
            steps_per_execution=settings.steps_per_execution,
        )
    return model, trained


def fit(settings, strategy, folder, trained, schedule, batches, validation):
    """Trains; returns `(progress, row)` as `keras_arch.training.fit` does.

    Args:
        settings: A `TrainingSettings`.
        strategy: `keras_arch.training.Strategy`.
        folder: The run folder.
        trained: The compiled model.
        schedule: Its learning rate schedule.
        batches: Function of the first update to the batches from there on, without end.
        validation: The batches to evaluate on.
    """
    if settings.accumulate > 1:
        validation = ka.training.average_weights(validation)

    def make_data(start_step):
        data = batches(start_step)
        if settings.accumulate > 1:
            data = ka.training.micro_batches(data, settings.accumulate)
        return strategy.batches(data)

    with strategy.scope():
        return ka.training.fit(
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


def save_model(model, progress, folder):
    """Writes the model and its learning curves into the run folder."""
    names = ", ".join(folder.settings["corpus"]["files"][:3])
    title = f"{model.name} on {names}, {keras.backend.backend()}"
    ka.training.plot_curves(progress, folder / "curves.png", title)
    with ka.training.replacing(folder / "model.keras") as temporary:
        model.save(temporary)


def digest(file):
    """Returns the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def command(main, settings_class, description):
    """Runs a recipe from the command line: its flags are the fields of `settings_class`.

    Args:
        main: Function of the settings.
        settings_class: A `TrainingSettings`.
        description: What `--help` says.
    """
    settings = tyro.cli(settings_class, description=description)
    try:
        with ka.training.interruptible():
            main(settings)
    except ka.training.Interrupted as stop:
        print(f"\n{stop}. To go on from the last checkpoint: {command_to_go_on(sys.argv)}")
        sys.exit(stop.code)
    except (ValueError, OSError, ka.training.NonFiniteLossError) as error:
        sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {error}")


def command_to_go_on(arguments):
    """Returns the command that resumes the run which these arguments began."""
    kept = [a for a in arguments if a not in ("--overwrite", "--no-overwrite")]
    return shlex.join(["python", *kept])
