"""Training objectives: what is made of rows of tokens, targets, losses and metrics."""

from keras_arch.objectives.crossentropy import TokenCrossentropy
from keras_arch.objectives.denoising import (
    delete_tokens,
    infill_text,
    mask_tokens,
    permute_sentences,
    rotate_document,
)
from keras_arch.objectives.masked_lm import mask_for_mlm
from keras_arch.objectives.metrics import BitsPerCharacter, Perplexity, TokenNats
from keras_arch.objectives.mixing import mixing_rates
from keras_arch.objectives.next_token import next_token
from keras_arch.objectives.packing import Packed, pack
from keras_arch.objectives.prefix_split import prefix_split
from keras_arch.objectives.replaced_tokens import replaced_token_batch
from keras_arch.objectives.sentence_pairs import next_sentence_pairs, pack_texts
from keras_arch.objectives.span_answers import Answer, answer_windows, best_answer
from keras_arch.objectives.span_corruption import (
    corrupt_spans,
    descending_sentinels,
    fill_spans,
    span_corruption,
)
from keras_arch.objectives.spans import random_spans, span_counts
from keras_arch.objectives.word_labels import label_pieces
