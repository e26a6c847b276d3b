"""A functional model built again, with the same weights in other layers."""

from keras import ops


def rebuilt(model, config):
    """Returns the model of another config, with the values of all variables that both have.

    Args:
        model: A functional model.
        config: Its config, changed.

    Raises:
        ValueError: If two of the model's variables have one path.
    """
    values = {variable.path: variable for variable in model.variables}
    if len(values) < len(model.variables):
        raise ValueError(f"the variables of {model.name!r} must have paths of their own.")
    again = type(model).from_config(config)
    for variable in again.variables:
        if variable.path in values:
            # JAX gives a trained model's buffers away: they may not be another model's, too.
            variable.assign(ops.copy(values[variable.path]))
    return again
