"""Training over text cut into segments, the state carried on: truncated back-propagation."""

import keras
from keras import ops, tree

from keras_arch.checks import check_positive
from keras_arch.generation.stepper import Stepper


def stateful(model, batch_size):
    """Returns a model that goes on, in each batch, from the state that the batch before left.

    Row b of a batch continues row b of the one before, unless it is `fresh`. The gradient ends at
    the segment's first token (truncated back-propagation through time: Williams & Peng 1990). How a
    model steps is derived from its graph, so this works for any model whose layers keep a state of
    fixed size, as recurrent ones do. Weights are the model's own: train what is returned, then use
    `model`.

    Training and evaluation carry a state each, in variables that checkpoints hold.

    Args:
        model: As `Stepper` takes it, without context inputs.
        batch_size: B, the same in all batches, training and evaluation.

    Returns:
        A functional model with the inputs `token_ids` int32 `[B, T]`, `valid` bool `[B, T]` and
        `fresh` bool `[B]`, True where a row begins a document; its output is the model's.

    Raises:
        ValueError: If the model has context inputs, or a layer of it keeps a state that grows with
            the text, as attention does; the message names it.
    """
    check_positive(batch_size=batch_size)
    shapes = {"token_ids": (None,), "valid": (None,), "fresh": ()}
    inputs = {
        name: keras.Input(batch_shape=(batch_size, *shape), dtype=dtype, name=name)
        for (name, shape), dtype in zip(shapes.items(), ("int32", "bool", "bool"), strict=True)
    }
    output = _CarriedState(model, batch_size, name="carried_state")(*inputs.values())
    return keras.Model(inputs, output, name=model.name)


class _CarriedState(keras.layers.Layer):
    """Steps a model from the state in its variables, and leaves the new one there."""

    def __init__(self, model, batch_size, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.stepper = Stepper(model)
        self.batch_size = batch_size
        _check_fixed(self.stepper)
        states = tree.flatten(self.stepper.start(batch_size, length=1)["layers"])
        self.carried = {
            name: [self._add_state(x) for x in states] for name in ("training", "evaluation")
        }

    def _add_state(self, x):
        dtype = keras.backend.standardize_dtype(x.dtype)
        return self.add_weight(
            shape=tuple(x.shape), initializer="zeros", dtype=dtype, trainable=False, name="state"
        )

    def call(self, token_ids, valid, fresh, training=False):
        begun = self.stepper.start(self.batch_size, length=1)
        variables = self.carried["training" if training else "evaluation"]

        def at_start(first, old):
            mask = ops.reshape(fresh, (-1, *[1] * (len(first.shape) - 1)))
            return ops.where(mask, first, ops.stop_gradient(ops.convert_to_tensor(old)))

        states = map(at_start, tree.flatten(begun["layers"]), variables)
        layers = tree.pack_sequence_as(begun["layers"], list(states))
        length = ops.shape(token_ids)[1]
        state = {**begun, "layers": layers, "length": begun["cursor"] + length}
        output, state = self.stepper.step(token_ids, valid, state)
        # In the order of the variables: Keras leaves that of nested dicts open on PyTorch.
        layers = tree.map_structure(lambda _, new: new, begun["layers"], state["layers"])
        for variable, new in zip(variables, tree.flatten(layers), strict=True):
            variable.assign(ops.stop_gradient(new))
        return output

    def compute_output_spec(self, token_ids, valid, fresh, training=False):
        output = self.model.outputs[0]
        return keras.KerasTensor((*token_ids.shape, *output.shape[2:]), output.dtype)


def _check_fixed(stepper):
    if stepper.context_inputs:
        raise ValueError(
            "model must have no context inputs to carry its state on; received a model with "
            f"{stepper.context_inputs}."
        )
    for name, call in stepper.stateful.items():
        if any(axis != -1 for axis in tree.flatten(stepper.slot_axes[name])):
            raise ValueError(
                "model must keep a state of fixed size to carry it on; layer "
                f"{call.layer.name!r} ({type(call.layer).__name__}) keeps one that grows with the "
                "text."
            )
