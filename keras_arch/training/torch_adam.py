"""Adam's step by the one kernel that PyTorch has for it on a CPU."""

import keras


def fits(variable, gradient):
    """Whether the kernel may update a variable: it wants one type and memory in one order."""
    if keras.backend.backend() != "torch" or variable.value.device.type != "cpu":
        return False
    tensors = variable.value, gradient
    return len({x.dtype for x in tensors}) == 1 and all(x.is_contiguous() for x in tensors)


def update(variable, gradient, momentum, velocity, step, learning_rate, settings):
    """Does one step in place.

    Args:
        variable: `keras.Variable`; so are `momentum` and `velocity`.
        gradient: float tensor.
        step: Number of this update, from 1.
        learning_rate: float scalar tensor or variable.
        settings: Has `beta_1`, `beta_2` and `epsilon`: a `keras.optimizers.Adam`.
    """
    import torch
    from torch.optim.adamw import adamw

    # Kingma and Ba's epsilon hat, as in Keras: PyTorch adds its epsilon after the correction.
    epsilon = settings.epsilon / (1 - settings.beta_2**step) ** 0.5
    with torch.no_grad():
        adamw(
            [variable.value],
            [gradient],
            [momentum.value],
            [velocity.value],
            [],
            [torch.tensor(step - 1.0)],
            fused=True,
            amsgrad=False,
            beta1=settings.beta_1,
            beta2=settings.beta_2,
            lr=float(keras.ops.convert_to_numpy(learning_rate)),
            weight_decay=0.0,
            eps=epsilon,
            maximize=False,
        )
