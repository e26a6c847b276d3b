import keras
import numpy as np
import pytest

from keras_arch.training import AdamW, WarmupCosine
from tests.training import tiny


def variable(value, name):
    return keras.Variable(np.array(value, "float32"), name=name)


def numpy(v):
    return keras.ops.convert_to_numpy(v.value)


def apply(optimizer, gradients, variables):
    optimizer.apply(
        [keras.ops.convert_to_tensor(np.array(g, "float32")) for g in gradients], variables
    )


def adamw(weights, gradients, rates, decay, clip, epsilon, amsgrad, beta_1=0.9, beta_2=0.99):
    """Loshchilov & Hutter 2019, algorithm 2, in float64; Keras' place of epsilon."""
    weights = [np.array(w, "float64") for w in weights]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    largest = [np.zeros_like(w) for w in weights]
    for t, (step_gradients, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        norm = np.sqrt(sum(np.sum(np.square(g)) for g in step_gradients))
        for i, g in enumerate(step_gradients):
            g = np.array(g) * min(1.0, clip / norm)
            if weights[i].ndim > 1:
                weights[i] -= rate * decay * weights[i]
            first[i] = beta_1 * first[i] + (1 - beta_1) * g
            second[i] = beta_2 * second[i] + (1 - beta_2) * g**2
            alpha = rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
            largest[i] = np.maximum(largest[i], second[i]) if amsgrad else second[i]
            weights[i] -= alpha * first[i] / (np.sqrt(largest[i]) + epsilon)
    return weights


@pytest.mark.parametrize(("epsilon", "amsgrad"), [(1e-7, False), (0.1, False), (1e-7, True)])
def test_steps_equal_the_algorithm(epsilon, amsgrad):
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(3, 4)), rng.normal(size=(4,))]
    gradients = [[rng.normal(size=(3, 4)) * s, rng.normal(size=(4,)) * s] for s in (3, 0.1, 1)]
    schedule = WarmupCosine(0.01, 0.001, 2, 5)
    options = {"epsilon": epsilon, "amsgrad": amsgrad}
    optimizer = AdamW(schedule, weight_decay=0.1, beta_2=0.99, global_clipnorm=1.0, **options)
    variables = [variable(start[0], "kernel"), variable(start[1], "bias")]
    for g in gradients:
        apply(optimizer, g, variables)
    expected = adamw(start, gradients, [0.01 / 3, 0.02 / 3, 0.01], 0.1, 1.0, **options)
    for v, e in zip(variables, expected, strict=True):
        np.testing.assert_allclose(numpy(v), e, rtol=1e-5)


def test_a_variable_whose_memory_is_in_another_order():
    """PyTorch makes an orthogonal matrix column by column."""
    initial = keras.initializers.Orthogonal(seed=1)((3, 3))
    start, gradient = keras.ops.convert_to_numpy(initial).copy(), np.arange(9.0).reshape(3, 3)
    kernel = keras.Variable(initial, name="kernel")
    optimizer = AdamW(0.01, weight_decay=0.1, beta_2=0.99, global_clipnorm=1.0)
    for _ in range(2):
        apply(optimizer, [gradient], [kernel])
    (expected,) = adamw([start], [[gradient]] * 2, [0.01] * 2, 0.1, 1.0, 1e-7, False)
    # One is 0.0016, what is left of numbers of float32 that are larger.
    np.testing.assert_allclose(numpy(kernel), expected, rtol=1e-5, atol=1e-7)


def decayed(optimizer, variables):
    """Which of the variables a step with zero gradients shrinks by 1 - rate * decay."""
    before = [numpy(v).copy() for v in variables]
    apply(optimizer, [np.zeros(v.shape) for v in variables], variables)
    found = []
    for v, b in zip(variables, before, strict=True):
        now = numpy(v)
        shrinks = np.allclose(now, b * (1 - 0.5 * 0.1), rtol=1e-6) and not np.array_equal(now, b)
        assert shrinks or np.array_equal(now, b)
        found.append(shrinks)
    return found


def test_decays_matrices_only():
    variables = [
        variable(np.ones((3, 4)), "kernel"),
        variable(np.ones((3, 4)), "table"),
        variable(np.ones((2, 3, 4)), "kernel"),
        variable(np.ones(4), "bias"),
        variable(np.ones((3, 4)), "bias"),
        variable(np.ones(4), "gamma"),
    ]
    optimizer = AdamW(0.5, weight_decay=0.1)
    assert decayed(optimizer, variables) == [True, True, True, False, False, False]


def test_decay_rule_survives_saving(tmp_path):
    model = tiny.model()
    model.compile(AdamW(0.5, weight_decay=0.1, global_clipnorm=1.0), "mse")
    model.optimizer.build(model.trainable_variables)
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    assert type(copy.optimizer) is AdamW
    assert copy.optimizer.get_config() == model.optimizer.get_config()
    for v in copy.trainable_variables:
        v.assign(keras.ops.ones(v.shape))
    expected = [v.name in ("table", "kernel") for v in copy.trainable_variables]
    assert set(expected) == {True, False}
    assert decayed(copy.optimizer, copy.trainable_variables) == expected


def test_accumulated_steps_follow_the_schedule_by_updates():
    rng = np.random.default_rng(1)
    start = rng.normal(size=(3, 4))
    gradients = [rng.normal(size=(3, 4)) for _ in range(6)]
    schedule = {k: WarmupCosine(0.1, 0.001, 1, 3, micro_batches=k) for k in (1, 2)}
    plain = variable(start, "kernel")
    accumulated = variable(start, "kernel")
    one = AdamW(schedule[1], global_clipnorm=1.0)
    two = AdamW(schedule[2], global_clipnorm=1.0, gradient_accumulation_steps=2)
    for i in range(0, 6, 2):
        apply(one, [(gradients[i] + gradients[i + 1]) / 2], [plain])
        apply(two, [gradients[i]], [accumulated])
        apply(two, [gradients[i + 1]], [accumulated])
    np.testing.assert_allclose(numpy(accumulated), numpy(plain), atol=1e-6)
    assert not np.allclose(numpy(plain), start, atol=1e-2)


def test_refuses_a_schedule_that_counts_other_steps():
    schedule = WarmupCosine(1e-3, 1e-4, 1, 10)
    with pytest.raises(ValueError, match="micro_batches=1, gradient_accumulation_steps=4"):
        AdamW(schedule, gradient_accumulation_steps=4)


@pytest.mark.parametrize("clip", [0, -1.0, float("nan")])
def test_refuses_a_clip_that_is_not_positive(clip):
    with pytest.raises(ValueError, match=f"global_clipnorm must be positive.*={clip}"):
        AdamW(global_clipnorm=clip)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_averages_are_the_recursion_over_updates(micro_batches):
    rng = np.random.default_rng(0)
    weights = variable(rng.normal(size=(3, 4)), "kernel")
    steps = None if micro_batches == 1 else micro_batches
    optimizer = AdamW(
        0.1, use_ema=True, ema_momentum=0.75, gradient_accumulation_steps=steps, weight_decay=0.0
    )
    average = None
    for _ in range(4):
        for _ in range(micro_batches):
            apply(optimizer, [rng.normal(size=(3, 4))], [weights])
        average = numpy(weights) if average is None else 0.75 * average + 0.25 * numpy(weights)
        average = average.copy()
    assert np.abs(average - numpy(weights)).max() > 0.01
    optimizer.finalize_variable_values([weights])
    np.testing.assert_allclose(numpy(weights), average, rtol=1e-6)
