"""Sizes, steps and rates of the demo."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """Settings that fit into a few minutes and still learn something."""

    vocab_size: int  # An upper limit.
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    max_seq_length: int
    max_predictions_per_seq: int
    next_sentence: bool  # Whether examples are pairs of segments.
    dupe_factor: int  # Passes over the text, each with different masks.
    heldout_dupe_factor: int
    pretraining_batch_size: int
    pretraining_steps: int  # The first tenth is warm-up.
    pretraining_rate: float  # Peak learning rate.
    text_length: int  # Maximum word pieces of a sentence to classify.
    fine_tuning_batch_size: int
    fine_tuning_epochs: int
    fine_tuning_rate: float  # Peak learning rate.
    fine_tuning_rates: tuple[float, ...]  # Of these, the dev rows choose one.

    def bert_config(self, vocab_size: int) -> dict[str, Any]:
        """Returns the contents of bert_config.json.

        Args:
            vocab_size: size of the vocabulary that was learned.
        """
        return {
            "vocab_size": vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "intermediate_size": 4 * self.hidden_size,
            "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1,
            # Longer than the examples, so that fill_mask accepts longer sentences.
            "max_position_embeddings": 128,
            "type_vocab_size": 2,
            "initializer_range": 0.02,
        }


FULL = Recipe(
    vocab_size=2000,
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    max_seq_length=64,
    max_predictions_per_seq=10,
    next_sentence=True,
    dupe_factor=100,
    heldout_dupe_factor=5,
    pretraining_batch_size=32,
    pretraining_steps=2000,
    pretraining_rate=1e-3,
    text_length=32,
    fine_tuning_batch_size=16,
    fine_tuning_epochs=5,
    fine_tuning_rate=3e-4,
    fine_tuning_rates=(3e-4, 1e-3),
)
TINY = dataclasses.replace(
    FULL,
    vocab_size=400,
    hidden_size=16,
    max_seq_length=32,
    max_predictions_per_seq=5,
    dupe_factor=1,
    heldout_dupe_factor=1,
    pretraining_batch_size=8,
    pretraining_steps=4,
    fine_tuning_epochs=1,
    fine_tuning_rates=(1e-3,),
)
