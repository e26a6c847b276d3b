"""Generation: decoding derived from the model's own graph."""

from keras_arch.generation.beam import BeamGeneration, generate_beams
from keras_arch.generation.beam_search import BeamSearch
from keras_arch.generation.contrastive import generate_contrastive
from keras_arch.generation.fill_mask import Filling, fill_mask
from keras_arch.generation.filters import (
    MinimumLength,
    MinP,
    NoRepeatNGram,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
)
from keras_arch.generation.generate import generate
from keras_arch.generation.halves import decoder_of, encoder_of
from keras_arch.generation.results import Generation
from keras_arch.generation.samplers import Greedy, Sample
from keras_arch.generation.sampling_schedules import (
    ExponentialSampling,
    InverseSigmoidSampling,
    LinearSampling,
)
from keras_arch.generation.scheduled_sampling import ScheduledSampling, scheduled_sampling
from keras_arch.generation.score import Score, score
from keras_arch.generation.speculative import SpeculativeGeneration, generate_speculative
from keras_arch.generation.stateful import stateful
from keras_arch.generation.stepper import Stepper
