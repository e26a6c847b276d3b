import keras
import numpy as np

from keras_arch.generation.programs import Programs


def test_a_key_is_compiled_once_and_the_oldest_goes_first():
    programs, made = Programs(limit=2), []

    def get(key):
        return programs.get(key, lambda x: x + key, [], lambda f, _: made.append(key) or f)

    assert [get(key)(10) for key in (1, 2, 1)] == [11, 12, 11]
    assert made == [1, 2]
    get(3)
    get(2)
    assert made == [1, 2, 3]
    get(1)
    assert made == [1, 2, 3, 1]


def test_other_variables_need_other_programs():
    programs = Programs()

    def double(number):
        variable = keras.Variable(np.float32(number))
        return float(programs.get("double", lambda x: x * variable, [variable])(np.float32(2.0)))

    assert [double(1.0), double(2.0)] == [2.0, 4.0]
