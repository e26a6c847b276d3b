"""`model.fit` with the callbacks that every recipe wants."""

import sys
import tempfile

import keras

from keras_arch.checks import check_positive
from keras_arch.training.averages import EvaluateAverages, has_averages, keep_averages
from keras_arch.training.callbacks import EarlyStopping, Recorder
from keras_arch.training.checkpoints import Checkpoints, SaveCheckpoint
from keras_arch.training.interruption import SignalsAtBatchEnds
from keras_arch.training.logs import WriteLogs
from keras_arch.training.torch_seed import ReseedTorch


def fit(
    model,
    make_data,
    validation,
    folder,
    *,
    schedule,
    steps,
    evaluate_every,
    log_every=25,
    micro_batches=1,
    patience=0,
    keep=2,
    chief=True,
):
    """Trains a compiled model in a run folder, from its last checkpoint if it has one.

    If the optimizer keeps a moving average of the weights (`use_ema=True`), that is what is
    evaluated and what the model has in the end.

    Args:
        model: compiled with a `TokenNats` named "nats" among its `weighted_metrics`. With its
            `steps_per_execution` callbacks come after as many batches: signals wait for them, and
            log rows for the first end of such a group.
        make_data: function of `start_step` that returns an endless dataset of training batches
            from that update on; `micro_batches` batches each.
        validation: dataset evaluated every `evaluate_every` updates, to its end.
        folder: RunFolder.
        schedule: the optimizer's learning rate schedule.
        steps: optimizer updates in all; a multiple of `evaluate_every`.
        evaluate_every: updates between two evaluations, each followed by a checkpoint.
        log_every: updates between two log rows.
        micro_batches: batches per update.
        patience: evaluations without improvement before it stops; then the best weights are
            loaded. 0 trains to the end and keeps the last weights.
        keep: newest checkpoints to keep, besides the best.
        chief: False in the other workers of a cluster: they read the last checkpoint and leave
            nothing in the folder.

    Returns:
        `(progress, row)`: the Progress, and the log row of the weights that the chief's model now
        has; the other workers keep the last weights.

    Raises:
        ValueError: the steps do not divide, no checkpoint can be loaded, or the one loaded lies
            beyond `steps` or between two evaluations.
        NonFiniteLossError: the loss became NaN or infinite.
    """
    check_steps(steps, evaluate_every)
    check_executions(model.steps_per_execution, evaluate_every, micro_batches)
    checkpoints = Checkpoints(folder / "checkpoints", keep)
    progress = checkpoints.restore(model)
    check_restored(progress, steps, evaluate_every)
    callbacks = [Recorder(progress, schedule, log_every, micro_batches, checkpoints, make_data)]
    if keras.backend.backend() == "torch":
        callbacks.append(ReseedTorch(progress))
    if patience:
        callbacks.append(EarlyStopping(progress, patience))
    if has_averages(model.optimizer):
        callbacks.append(EvaluateAverages())
    logs = WriteLogs(progress, folder / "log.csv", folder / "events")
    with SignalsAtBatchEnds() as at_batch_ends, tempfile.TemporaryDirectory() as unused:
        # Saving makes variables, which the workers of a cluster only make together.
        callbacks.append(SaveCheckpoint(checkpoints if chief else Checkpoints(unused), progress))
        if chief:
            callbacks.append(logs)
        if progress.step < steps and not progress.stopped:
            model.fit(
                make_data(progress.step),
                validation_data=validation,
                initial_epoch=progress.step // evaluate_every,
                epochs=steps // evaluate_every,
                steps_per_epoch=evaluate_every * micro_batches,
                shuffle=False,
                verbose=verbosity() if chief else 0,
                callbacks=[*callbacks, at_batch_ends],
            )
        elif chief:
            # The earlier process may have died between its last checkpoint and its last row.
            logs.on_train_begin()
            logs.on_train_end()
    row = checkpoints.load_best(model, progress) if patience and chief else progress.rows[-1]
    keep_averages(model)
    return progress, row


def verbosity():
    """Returns Keras' `verbose`: a progress bar in a terminal, else a line for each interval."""
    return 1 if sys.stdout.isatty() else 2


def check_steps(steps, evaluate_every):
    """Raises ValueError unless `steps` is a positive multiple of `evaluate_every`."""
    if evaluate_every < 1 or steps < 1 or steps % evaluate_every:
        raise ValueError(
            "steps must be a positive multiple of evaluate_every; received "
            f"steps={steps}, evaluate_every={evaluate_every}."
        )


def check_executions(steps_per_execution, evaluate_every, micro_batches=1):
    """Raises ValueError for a `steps_per_execution` of `compile` that `fit` cannot keep.

    Args:
        steps_per_execution: batches per call of the compiled step.
        evaluate_every: updates between two evaluations.
        micro_batches: batches per update.
    """
    check_positive(steps_per_execution=steps_per_execution)
    if evaluate_every * micro_batches % steps_per_execution:
        raise ValueError(
            "steps_per_execution must divide the batches between two evaluations, "
            f"evaluate_every * micro_batches; received steps_per_execution={steps_per_execution}, "
            f"evaluate_every={evaluate_every}, micro_batches={micro_batches}."
        )
    if steps_per_execution > 1 and keras.backend.backend() == "torch":
        raise ValueError(
            "steps_per_execution must be 1 on the torch backend, which runs each step by itself; "
            f"received steps_per_execution={steps_per_execution}."
        )


def check_restored(progress, steps, evaluate_every):
    """Raises ValueError unless a training that stands at `progress` can go on with these steps."""
    if progress.step > steps or progress.step % evaluate_every:
        raise ValueError(
            f"the checkpoint after {progress.step} updates must lie at a multiple of "
            f"evaluate_every and not beyond steps; received steps={steps}, "
            f"evaluate_every={evaluate_every}."
        )
