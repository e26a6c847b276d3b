"""Training one model in several processes, each with a share of every batch (TensorFlow)."""

import keras


class WorkerModel(keras.Model):
    """A functional model that `fit` and `evaluate` train in each process of a cluster.

    It shares the layers and variables of the model whose inputs and outputs it is given. Build
    that one inside the strategy's scope, so that its variables are mirrored; make this one outside,
    because Keras prepares a model that was made inside by a mean of its first batch over the
    workers, which fails. Compile and fit it inside again, with metrics that have their variables
    from the start, such as those of `keras_arch.objectives`.

    In several processes Keras (3.15) takes the mean of what a step returns over axis 0, which
    scalars lack (keras#20585). So the steps return vectors of length one.
    """

    def compile(self, *args, **kwargs):
        """Compiles, and makes the optimizer's variables, which no step can make on its own."""
        super().compile(*args, **kwargs)
        self.optimizer.build(self.trainable_variables)

    def train_step(self, data):
        """Returns the metrics of a training step of this replica, each float `[1]`."""
        return as_vectors(super().train_step(data))

    def test_step(self, data):
        """Returns the metrics of an evaluation step of this replica, each float `[1]`."""
        return as_vectors(super().test_step(data))


def as_vectors(metrics):
    """Gives each scalar an axis."""
    return {name: keras.ops.reshape(value, (1,)) for name, value in metrics.items()}


def shares(dataset, worker, workers, replicas):
    """Cuts out of each batch of a tf.data.Dataset what the replicas of one worker train on.

    Args:
        dataset: global batches; a multiple of workers * replicas rows each.
        worker: number of the worker, from 0.
        workers: number of workers.
        replicas: replicas of each worker.

    Returns:
        A dataset with `replicas` elements for each batch. Over workers, then replicas, they are
        the rows of the batch in order.
    """
    import tensorflow as tf

    def cut(tensor):
        rows = tf.shape(tensor)[0] // workers
        shape = tf.concat([[replicas, rows // replicas], tf.shape(tensor)[1:]], 0)
        own = tf.reshape(tensor[worker * rows : (worker + 1) * rows], shape)
        return tf.ensure_shape(own, [replicas, None, *tensor.shape[1:]])

    return dataset.map(lambda *batch: tf.nest.map_structure(cut, batch)).unbatch()


def distribute(dataset, distribution):
    """Returns the distributed dataset of which `fit` hands each replica its share."""

    def own(context):
        workers = context.num_input_pipelines
        replicas = context.num_replicas_in_sync // workers
        return shares(dataset, context.input_pipeline_id, workers, replicas)

    return distribution.distribute_datasets_from_function(own)


def make_distribution():
    """Returns the MultiWorkerMirroredStrategy of the cluster in TF_CONFIG; waits for its workers.

    Raises:
        ValueError: TF_CONFIG does not say which worker this is, or TensorFlow was used before.
    """
    import tensorflow as tf

    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise ValueError(
            "strategy='multiworker' could not join the workers in TF_CONFIG, which must be done "
            f"before TensorFlow is used: {error}"
        ) from error


def is_chief(distribution):
    """Returns whether this worker is the one that writes the run folder."""
    resolver = distribution.cluster_resolver
    if "chief" in resolver.cluster_spec().jobs:
        return resolver.task_type == "chief"
    return resolver.task_id == 0


def all_agree(distribution, ok):
    """Waits for all workers; returns whether each of them said `ok`."""
    import tensorflow as tf

    def refusals():
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(0.0 if ok else 1.0))

    found = tf.function(lambda: distribution.run(refusals), autograph=False)()
    return float(distribution.experimental_local_results(found)[0]) == 0.0
