"""Where a training runs: one device, several local ones, several processes, or refused by name."""

import contextlib
import dataclasses
import json
import os

import keras

from keras_arch.training import workers

NAMES = ("auto", "one", "mirrored", "multiworker", "tpu")


@dataclasses.dataclass(frozen=True)
class Strategy:
    """The devices of one training. Build and train the model inside `scope()`, on `batches(data)`.

    Attributes:
        name: "one", "mirrored", "multiworker" or "tpu".
        replicas: how many copies of the model share a global batch.
        distribution: the tf.distribute.Strategy or keras.distribution.Distribution, or None.
        chief: this process writes the run folder; False in the other workers of a cluster.
    """

    name: str
    replicas: int = 1
    distribution: object = None
    chief: bool = True

    def scope(self):
        """Context in which the model is built, compiled, restored and fitted."""
        if self.distribution is None:
            return contextlib.nullcontext()
        return self.distribution.scope()

    def trainable(self, model):
        """Returns the model to compile and fit in `scope()`; call it outside.

        It has the layers and variables of `model`, which was built in `scope()`; mostly it is
        `model` itself, else a `keras_arch.training.workers.WorkerModel`. Save and use `model`.
        """
        if self.name != "multiworker":
            return model
        return workers.WorkerModel(model.inputs, model.outputs, name=model.name)

    def all_agree(self, ok=True):
        """Returns whether each worker of the cluster said `ok`, after waiting for all of them."""
        return ok if self.name != "multiworker" else workers.all_agree(self.distribution, ok)

    def jit_compile(self, requested="auto"):
        """Returns what to pass to `model.compile(jit_compile=...)`.

        Args:
            requested: "auto", True or False. "auto" is XLA where it works: on TensorFlow with
                one replica and on JAX; torch stays eager.

        Raises:
            ValueError: True with several tf.distribute replicas, which Keras cannot compile.
        """
        replicated = keras.backend.backend() == "tensorflow" and self.replicas > 1
        if requested == "auto":
            return keras.backend.backend() != "torch" and not replicated
        if requested and replicated:
            raise ValueError(
                f"jit_compile=True does not work with {self.replicas} replicas of strategy "
                f"{self.name!r} on TensorFlow; use jit_compile='auto'."
            )
        return requested

    def batches(self, dataset):
        """Returns a dataset that `fit` and `evaluate` accept on these devices.

        With tf.distribute replicas Keras averages a first batch over them to learn its shapes,
        which fails for bool (keras 3.15). There bool becomes int32; a functional model casts
        its inputs back. In a cluster each worker gets its rows of each batch.
        """
        if self.name == "multiworker":
            return workers.distribute(dataset, self.distribution)
        if keras.backend.backend() != "tensorflow" or self.replicas == 1:
            return dataset
        import tensorflow as tf

        def cast(tensor):
            return tf.cast(tensor, tf.int32) if tensor.dtype == tf.bool else tensor

        return dataset.map(lambda *batch: tf.nest.map_structure(cast, batch))

    def check(self, batch_size, micro_batches=1, precision="float32", steps_per_execution=1):
        """Refuses what would fail, or go wrong unseen, later inside `fit`.

        Args:
            batch_size: rows of one global batch, over all replicas.
            micro_batches: gradient accumulation steps.
            precision: as for `keras_arch.training.precision`.
            steps_per_execution: batches per call of the compiled step.

        Raises:
            ValueError: names the argument at fault.
        """
        if batch_size < 1 or batch_size % self.replicas:
            raise ValueError(
                "batch_size is global and must be a positive multiple of the replicas; received "
                f"batch_size={batch_size} with {self.replicas} replicas of {self.name!r}."
            )
        if self.replicas == 1 or keras.backend.backend() != "tensorflow":
            return
        if micro_batches > 1:
            raise ValueError(
                "gradient accumulation does not work with several replicas on TensorFlow; "
                f"received micro_batches={micro_batches} with {self.replicas} replicas. Use "
                "strategy 'one' or the JAX backend."
            )
        if steps_per_execution > 1:
            raise ValueError(
                "steps_per_execution must be 1 with several replicas on TensorFlow, where Keras's "
                f"loop over the steps fails; received steps_per_execution={steps_per_execution} "
                f"with {self.replicas} replicas."
            )
        if precision == "float16":
            raise ValueError(
                "precision='float16' needs loss scaling, which Keras checks for overflow on the "
                f"first of {self.replicas} TensorFlow replicas only; use 'bfloat16'."
            )


def strategy(name="auto"):
    """Returns the Strategy called `name` for the backend in use.

    | name          | TensorFlow                         | JAX                    | torch   |
    |---------------|------------------------------------|------------------------|---------|
    | "one"         | one device                         | one device             | one     |
    | "mirrored"    | MirroredStrategy, local devices    | DataParallel, the same | refused |
    | "tpu"         | TPUStrategy                        | DataParallel on TPUs   | refused |
    | "multiworker" | MultiWorkerMirroredStrategy        | refused                | refused |
    | "auto"        | multiworker, tpu, mirrored or one  | mirrored, else one     | one     |

    "multiworker" needs TF_CONFIG in each process, and to be made before TensorFlow is used.

    Raises:
        ValueError: the name is unknown, unsupported here, or TF_CONFIG is malformed.
    """
    if name not in NAMES:
        raise ValueError(f"strategy must be one of {NAMES}; received {name!r}.")
    backend = keras.backend.backend()
    count = worker_count()
    if name == "multiworker" or (name == "auto" and count > 1):
        return worker_strategy(backend, count)
    if name == "one":
        return Strategy("one")
    if backend == "tensorflow":
        return tensorflow_strategy(name)
    if backend == "jax":
        return jax_strategy(name)
    if name == "auto":
        return Strategy("one")
    raise ValueError(
        f"strategy={name!r} is not supported on the {backend} backend; supported: 'one'."
    )


def worker_count():
    """Returns the number of workers that TF_CONFIG names; 0 without TF_CONFIG.

    Raises:
        ValueError: TF_CONFIG is not the JSON that TensorFlow documents.
    """
    text = os.environ.get("TF_CONFIG", "").strip()
    if not text:
        return 0
    try:
        cluster = json.loads(text).get("cluster", {})
        return len(cluster.get("worker", [])) + len(cluster.get("chief", []))
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(
            'TF_CONFIG must be JSON such as {"cluster": {"worker": ["host:port", ...]}, '
            f'"task": {{"type": "worker", "index": 0}}}}; received TF_CONFIG={text!r}.'
        ) from error


def worker_strategy(backend, count):
    """Returns the Strategy of a cluster with this many workers."""
    if backend != "tensorflow":
        raise ValueError(
            f"several workers are not supported on the {backend} backend; supported: 'one' and "
            "'mirrored' (several devices of one process, on TensorFlow and JAX)."
        )
    if count < 2:
        raise ValueError(
            "strategy='multiworker' reads its workers, two or more, from the environment variable "
            f"TF_CONFIG; it names {count}."
        )
    distribution = workers.make_distribution()
    replicas = distribution.num_replicas_in_sync
    return Strategy("multiworker", replicas, distribution, workers.is_chief(distribution))


def tensorflow_strategy(name):
    """Returns the Strategy for "auto", "mirrored" or "tpu" on TensorFlow."""
    import tensorflow as tf

    if name == "tpu" or (name == "auto" and os.environ.get("TPU_NAME")):
        try:
            resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
            tf.config.experimental_connect_to_cluster(resolver)
            tf.tpu.experimental.initialize_tpu_system(resolver)
        except (ValueError, tf.errors.OpError) as error:
            raise ValueError(f"strategy={name!r} found no TPU: {error}") from error
        return from_tensorflow("tpu", tf.distribute.TPUStrategy(resolver))
    gpus = tf.config.list_logical_devices("GPU")
    if name == "auto" and len(gpus) < 2:
        return Strategy("one")
    devices = gpus or tf.config.list_logical_devices("CPU")
    mirrored = tf.distribute.MirroredStrategy([device.name for device in devices])
    return from_tensorflow("mirrored", mirrored)


def from_tensorflow(name, distribution):
    """Wraps a tf.distribute.Strategy."""
    return Strategy(name, distribution.num_replicas_in_sync, distribution)


def jax_strategy(name):
    """Returns the Strategy for "auto", "mirrored" or "tpu" on JAX."""
    try:
        devices = keras.distribution.list_devices("tpu" if name == "tpu" else None)
    except RuntimeError as error:
        raise ValueError(f"strategy={name!r} found no device: {error}") from error
    if name == "auto" and len(devices) < 2:
        return Strategy("one")
    distribution = keras.distribution.DataParallel(devices=devices)
    return Strategy("tpu" if name == "tpu" else "mirrored", len(devices), distribution)
