import dataclasses

import pytest

import keras_arch as ka
from keras_arch.models import GPT2Config, LlamaConfig

pytestmark = pytest.mark.once

CONFIG = GPT2Config(vocabulary_size=10, width=8, layers=2, heads=2, context_length=6)
# Blocks: matrices 8 * (24 + 8 + 32 + 32), biases 24 + 32 beside splits; norms and other biases 48.
PARAMETERS = 2 * (768 + 56 + 48) + 80 + 48 + 16
# Of a token: 6 * 8 + 24 + 8 + 3 * 32 numbers and 2 * 2 * 6 scores; at the end 3 * 2 * 6 scores.
TOKEN = 2 * (4 * 176 + 4 * 24) + 4 * 36


def test_one_device_by_hand():
    plan = ka.analysis.plan(CONFIG, 4)
    assert (plan.parameters, plan.weight_bytes) == (PARAMETERS, 4 * PARAMETERS)
    assert plan.optimizer_bytes == 8 * PARAMETERS
    assert (plan.average_bytes, plan.gradient_bytes) == (0, 4 * PARAMETERS)
    assert plan.activation_bytes == 24 * TOKEN
    assert plan.training_bytes == 16 * PARAMETERS + 24 * TOKEN
    assert plan.cache_bytes == 2 * 24 * (2 * 8 * 4 + 4)
    assert (plan.forward_flops, plan.training_flops) == (3616, 10848)
    assert (plan.sent_bytes, plan.sending_seconds) == (0, 0)
    assert (plan.step_seconds, plan.fits, plan.largest) == (None, None, None)


def test_micro_batches_and_averages():
    plan = ka.analysis.plan(CONFIG, 4, 3, accumulate=2, ema=True)
    assert (plan.average_bytes, plan.gradient_bytes) == (4 * PARAMETERS, 8 * PARAMETERS)
    # Half the rows of half the length: 12 scores and not 24; the 3 * 10 logits are now more.
    assert plan.activation_bytes == 6 * (2 * (4 * 176 + 4 * 12) + 4 * 30)
    assert plan.training_bytes == 24 * PARAMETERS + plan.activation_bytes


def test_time_is_that_of_products_traffic_and_sending():
    plan = ka.analysis.plan(CONFIG, 4, devices=2, flops=1e6, bandwidth=2e6, link=4e6)
    assert plan.compute_seconds == pytest.approx(12 * 10848 / 1e6)
    assert plan.memory_seconds == pytest.approx((4 * 12 * TOKEN + 40 * PARAMETERS) / 2e6)
    assert plan.sending_seconds == pytest.approx(4 * PARAMETERS / 4e6)
    parts = plan.compute_seconds + plan.memory_seconds + plan.sending_seconds
    assert plan.step_seconds == pytest.approx(parts)


def test_half_precision_keeps_weights_and_scores():
    plan = ka.analysis.plan(CONFIG, 4, precision="bfloat16")
    assert plan.weight_bytes == 4 * PARAMETERS
    assert plan.activation_bytes == 24 * (2 * (2 * 176 + 4 * 24) + 4 * 36)


def test_the_largest_has_the_same_proportions():
    larger = GPT2Config(vocabulary_size=10, width=24, layers=6, heads=6, context_length=6)
    needs = ka.analysis.plan(larger, 4).training_bytes
    assert ka.analysis.plan(CONFIG, 4, memory=needs).largest == larger
    smaller = GPT2Config(vocabulary_size=10, width=20, layers=5, heads=5, context_length=6)
    assert ka.analysis.plan(CONFIG, 4, memory=needs - 1).largest == smaller
    plan = ka.analysis.plan(CONFIG, 4, memory=100)
    assert (plan.fits, plan.largest) == (False, None)


def test_the_largest_of_a_sharded_llama_divides_over_the_devices():
    config = LlamaConfig(
        vocabulary_size=16,
        width=32,
        layers=1,
        heads=8,
        key_value_heads=4,
        hidden_width=84,
        context_length=8,
    )
    options = {"devices": 4, "sharding": "tensor"}
    double = dataclasses.replace(
        config, width=64, layers=2, heads=16, key_value_heads=8, hidden_width=168
    )
    needs = ka.analysis.plan(double, 2, **options).training_bytes
    assert ka.analysis.plan(config, 2, memory=needs, **options).largest == double
    assert ka.analysis.plan(config, 2, memory=needs - 1, **options).largest == config


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"length": 7}, "length=7, context_length=6"),
        ({"config": ka.models.RNNLMConfig}, "must be a GPT2Config or a LlamaConfig"),
        ({"devices": 0}, "devices=0"),
        ({"accumulate": 3}, "accumulate=3, batch_size=4"),
        ({"flops": 0.0}, "flops=0.0"),
        ({"memory": -1}, "memory=-1"),
        ({"precision": "int8"}, "received 'int8'"),
        ({"sharding": "pipeline"}, "sharding='pipeline'"),
        ({"devices": 3}, "devices must divide batch_size .*'data'; received devices=3"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.analysis.plan(**{"config": CONFIG, "batch_size": 4} | arguments)
