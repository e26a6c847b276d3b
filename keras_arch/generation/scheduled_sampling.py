"""Training that reads the model's own tokens now and then (Bengio et al. 2015)."""

import keras
from keras import ops

from keras_arch.backend import scan
from keras_arch.generation.sampling_schedules import SamplingSchedule
from keras_arch.generation.stepper import Stepper
from keras_arch.layers.part import Part


def scheduled_sampling(model, schedule):
    """Returns a model to train: the same inputs and weights, but it reads some tokens of its own.

    ```
    trained = scheduled_sampling(model, InverseSigmoidSampling(k=2000.0))
    trained.compile("adam", ka.objectives.TokenCrossentropy())
    trained.fit(inputs, targets, sample_weight=weights)
    ka.generate(model, ...)  # `model` has learned
    ```

    Outside of training it gives what `model` gives.

    Args:
        model: A functional model that a `Stepper` takes.
        schedule: A `SamplingSchedule`.

    Raises:
        ValueError: If `schedule` is none, or as `Stepper`.
    """
    inputs = {x.name: keras.Input(x.shape[1:], dtype=x.dtype, name=x.name) for x in model.inputs}
    # Of float32, so that the weights it hands to the steps are not rounded first.
    layer = ScheduledSampling(model, schedule, name="scheduled_sampling", dtype="float32")
    return keras.Model(inputs, layer(inputs), name=f"scheduled_{model.name}")


@keras.saving.register_keras_serializable(package="keras_arch")
class ScheduledSampling(Part):
    """A model as a layer; in training it runs token by token, by the model's `Stepper`.

    With probability `1 - epsilon` a token that is read is not the given one but the most probable
    after what was read before it; a row's first token is always given. No gradient flows through
    the choice. Source: Bengio et al. 2015, sections 2.3 and 2.4.

    Args:
        model: A functional model that a `Stepper` takes.
        schedule: A `SamplingSchedule`, of the number of training steps.

    Call arguments:
        inputs: Dict of the model's inputs, by name.

    Returns:
        The model's output, float `[B, T, V]`.
    """

    def __init__(self, model, schedule, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(schedule, SamplingSchedule):
            raise ValueError(
                f"schedule must be a SamplingSchedule; received schedule={schedule!r}."
            )
        self.model = model
        self.schedule = schedule
        self.seeds = keras.random.SeedGenerator()
        self._stepper = Stepper(model)

    def build(self, input_shapes):
        # What counts is the number of updates, the same in all replicas.
        self.count = self.add_weight(
            shape=(),
            initializer="zeros",
            dtype="int32",
            trainable=False,
            aggregation="only_first_replica",
            name="count",
        )

    def call(self, inputs, training=None):
        if not training:
            return self.model(inputs)
        epsilon = self.schedule.epsilon(ops.cast(self.count, "float32"))
        self.count.assign_add(1)
        uniforms = keras.random.uniform(ops.shape(inputs["token_ids"]), seed=self.seeds)
        return self._run(inputs, uniforms >= epsilon)

    def compute_output_spec(self, inputs, training=None):
        output = self.model.output
        return keras.KerasTensor((*inputs["token_ids"].shape, output.shape[-1]), output.dtype)

    def _run(self, inputs, own):
        """Returns the outputs, reading the model's own tokens where `own`, bool `[B, T]`."""
        stepper, variables = self._stepper, self._stepper.variables
        changing = [v for v in variables if not v.trainable]
        context = {name: inputs[name] for name in stepper.context_inputs}
        rows, time = ops.shape(inputs["token_ids"])
        state = stepper.start(rows, time, context)
        values = {id(v): v.value for v in variables}

        def body(carried, step):
            # What a layer draws from (the seeds of dropout) goes on from step to step.
            now = values | {id(v): x for v, x in zip(changing, carried["changing"], strict=True)}
            mapping = [(v, now[id(v)]) for v in variables]
            read = ops.where(
                ops.logical_and(step["own"], carried["begun"]), carried["token"], step["token"]
            )
            with keras.StatelessScope(state_mapping=mapping) as scope:
                state = {**kept, **carried["state"]}
                output, state = stepper.step(read[:, None], step["valid"][:, None], state)
                after = [scope.get_current_value(v) for v in changing]
            token = ops.cast(ops.argmax(output[:, 0], axis=-1), read.dtype)
            carried = {
                "begun": ops.logical_or(carried["begun"], step["valid"]),
                "changing": [
                    old if new is None else new
                    for old, new in zip(carried["changing"], after, strict=True)
                ],
                "state": {name: state[name] for name in carried["state"]},
                "token": ops.where(step["valid"], token, carried["token"]),
            }
            return carried, output[:, 0]

        # The rest of the state no step changes.
        kept = {name: state[name] for name in ("context", "length")}
        valid = inputs["valid"]
        first = {
            "begun": ops.zeros_like(valid[:, 0]),
            "changing": [values[id(v)] for v in changing],
            "state": {name: state[name] for name in ("layers", "cursor")},
            "token": ops.zeros_like(inputs["token_ids"][:, 0]),
        }
        steps = {"own": own, "token": inputs["token_ids"], "valid": valid}
        steps = {name: ops.transpose(x) for name, x in steps.items()}
        last, outputs = scan(body, first, steps)
        for variable, value in zip(changing, last["changing"], strict=True):
            variable.assign(value)
        return ops.swapaxes(outputs, 0, 1)
