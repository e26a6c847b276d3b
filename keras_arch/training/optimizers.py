"""AdamW as language models use it: decay on matrices, exact clipping."""

import keras
from keras import ops

from keras_arch.training import torch_adam
from keras_arch.training.schedules import WarmupCosine


@keras.saving.register_keras_serializable(package="keras_arch")
class AdamW(keras.optimizers.AdamW):
    """AdamW that decays matrices only and uses the whole gradient of the global batch.

    Weight decay applies to variables of rank two and more (kernels, embedding tables), not to
    biases and norm scales, whatever their rank. The rule belongs to the class, so a saved and
    reloaded optimizer still follows it.

    `global_clipnorm` bounds the norm of the whole gradient. Under tf.distribute Keras clips each
    replica's share before they are summed; here the sum is clipped, as on one device.

    With `use_ema=True` the weights' average after update n is `m * average + (1 - m) * weights`,
    m being `ema_momentum`; after the first it is the weights. Keras averages at each micro-batch.

    Args:
        learning_rate: float or schedule. With `gradient_accumulation_steps=k` a `WarmupCosine`
            needs `micro_batches=k`.
        The others are those of `keras.optimizers.AdamW`.

    Raises:
        ValueError: a WarmupCosine counts other micro-batches than the optimizer, or
            `global_clipnorm` is not positive.

    Source: Loshchilov & Hutter 2019, algorithm 2; decay on matrices only after Radford et al.
    2018, section 4.1; averages after Polyak & Juditsky 1992, exponential as in Keras.
    """

    def __init__(self, learning_rate=0.001, weight_decay=0.1, **kwargs):
        micro_batches = kwargs.get("gradient_accumulation_steps") or 1
        if isinstance(learning_rate, WarmupCosine) and (
            learning_rate.micro_batches != micro_batches
        ):
            raise ValueError(
                "WarmupCosine(micro_batches=) must equal gradient_accumulation_steps, so that the "
                f"schedule counts updates; received micro_batches={learning_rate.micro_batches}, "
                f"gradient_accumulation_steps={micro_batches}."
            )
        clip = kwargs.get("global_clipnorm")
        if clip is not None and not clip > 0:
            raise ValueError(
                f"global_clipnorm must be positive, or None; received global_clipnorm={clip}."
            )
        super().__init__(learning_rate, weight_decay=weight_decay, **kwargs)

    def build(self, variables):
        """Makes the moments and leaves vectors out of weight decay."""
        if not self.built:
            self.exclude_from_weight_decay(var_list=[v for v in variables if not decays(v)])
        super().build(variables)

    def apply(self, grads, trainable_variables=None):
        """Updates the variables from gradients that are summed over replicas first."""
        if keras.backend.backend() == "tensorflow":
            grads = clip_over_replicas(grads, self.global_clipnorm)
        super().apply(grads, trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable; on PyTorch's CPU by one kernel, where Keras has ten or more."""
        if self.amsgrad or not torch_adam.fits(variable, gradient):
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        torch_adam.update(
            variable,
            gradient,
            self._momentums[index],
            self._velocities[index],
            step=int(self.iterations) + 1,
            learning_rate=learning_rate,
            settings=self,
        )

    def _update_model_variables_moving_average(self, trainable_variables):
        """Updates the averages, at the last micro-batch of each update."""
        steps = self.gradient_accumulation_steps or 1
        momentum = ops.where(self.iterations == 0, 0.0, self.ema_momentum)
        momentum = ops.where((self._iterations + 1) % steps == 0, momentum, 1.0)
        for v, average in zip(
            trainable_variables, self._model_variables_moving_average, strict=True
        ):
            average.assign(momentum * average + (1.0 - momentum) * v)


def decays(variable):
    """True for matrices: kernels and tables; False for biases and norm scales."""
    return len(variable.shape) >= 2 and "bias" not in variable.name


def clip_over_replicas(grads, clip_norm):
    """Clips the sum of the replicas' gradients and hands each replica an equal share of it.

    Keras sums the shares again when it updates, which gives the clipped sum. Its own clipping of
    the shares then has nothing left to cut: a share's norm is at most clip_norm / replicas.
    Returns `grads` unchanged outside a tf.distribute replica, with one replica, or unclipped.
    """
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if clip_norm is None or context is None or context.num_replicas_in_sync == 1:
        return grads
    present = [g for g in grads if g is not None]
    total = context.all_reduce(tf.distribute.ReduceOp.SUM, present)
    clipped, _ = tf.clip_by_global_norm(total, clip_norm)
    shares = iter([g / context.num_replicas_in_sync for g in clipped])
    return [None if g is None else next(shares) for g in grads]
