import pytest
import tokenizers

from keras_arch.text.subword_training import check_vocabulary_size, learn

pytestmark = pytest.mark.once


def test_the_model_is_data():
    learner = tokenizers.Tokenizer(tokenizers.models.BPE())
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=4, show_progress=False)
    model = learn(learner, trainer, ["ab", "ab"])
    assert model["vocab"] == {"a": 0, "b": 1, "ab": 2}
    assert model["merges"] == [["a", "b"]]


def test_a_vocabulary_that_is_too_small_is_refused():
    check_vocabulary_size(7, 7, "a week")
    with pytest.raises(ValueError, match="at least 7, to hold a week; received vocabulary_size=6"):
        check_vocabulary_size(6, 7, "a week")
    for wrong in (7.0, "7", True, None):
        with pytest.raises(ValueError, match="must be an integer"):
            check_vocabulary_size(wrong, 7, "a week")
