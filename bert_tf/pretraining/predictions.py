"""Words behind [MASK]."""

import dataclasses
import json
import os

import numpy as np

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import native
from bert_tf.modeling import config as modeling_config
from bert_tf.pretraining import model as pretraining_model
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary

MASK = "[MASK]"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filling:
    """One word that may stand behind one [MASK]."""

    token: str  # A word piece.
    probability: float  # Of this piece among the whole vocabulary.


class MaskFiller:
    """A pretrained model that says what stands behind [MASK].

    Args:
        model: built `BertPretrainer` with weights.
        tokenizer: `FullTokenizer` that never splits [MASK].
    """

    def __init__(self, model, tokenizer):
        self.model = model
        self.tokenizer = tokenizer

    def fill(self, text, *, top_k=5):
        """Returns, for each [MASK] of a text, its likeliest pieces.

        Args:
            text: str with at least one [MASK].
            top_k: int, pieces a mask.

        Returns:
            list, one a mask, of lists of `top_k` `Filling`s, likeliest first.

        Raises:
            ValueError: there is no [MASK], or the text is too long for the model.
        """
        tokens = ["[CLS]", *self.tokenizer.tokenize(text), "[SEP]"]
        positions = [i for i, token in enumerate(tokens) if token == MASK]
        if not positions:
            raise ValueError(f"Expected at least one [MASK] in the text, got {text!r}.")
        self.model.config.check_sequence_length(len(tokens))
        ids = self.tokenizer.convert_tokens_to_ids(tokens)
        outputs = self.model(
            {
                "input_ids": np.array([ids], np.int32),
                "input_mask": np.ones([1, len(ids)], np.int32),
                "segment_ids": np.zeros([1, len(ids)], np.int32),
                "masked_lm_positions": np.array([positions], np.int32),
            }
        )
        logits = np.asarray(outputs["masked_lm_logits"][0], np.float64)
        return [self._likeliest(row, top_k) for row in logits]

    def _likeliest(self, logits, top_k):
        probabilities = np.exp(logits - logits.max())
        probabilities /= probabilities.sum()
        order = np.argsort(-probabilities, kind="stable")[:top_k]
        tokens = self.tokenizer.convert_ids_to_tokens([int(i) for i in order])
        return [
            Filling(token=token, probability=float(probabilities[i]))
            for token, i in zip(tokens, order, strict=True)
        ]


def load(options):
    """Returns the `MaskFiller` of a checkpoint.

    Args:
        options: `run_options.FillMaskOptions`. Configuration, vocabulary and casing
            that it leaves out are looked for beside the checkpoint.

    Raises:
        ValueError, OSError: something is missing, or does not fit together.
    """
    folder = options.init_checkpoint
    if not files.is_folder(folder):
        folder = os.path.dirname(folder) or "."
    config = modeling_config.BertConfig.from_json_file(
        options.bert_config_file or os.path.join(folder, "bert_config.json")
    )
    words = vocabulary.Vocabulary.load(
        options.vocab_file or os.path.join(folder, "vocab.txt")
    )
    config.check_vocabulary_size(len(words))
    tokenizer = full.FullTokenizer(
        words, do_lower_case=_do_lower_case(options, folder), never_split=(MASK,)
    )
    model = pretraining_model.BertPretrainer(config, next_sentence=False)
    model.build()
    report = native.load_checkpoint(model, options.init_checkpoint)
    unread = [name for name in report.missing if name.startswith("cls/predictions")]
    if unread:
        raise ValueError(
            f"{options.init_checkpoint} has no masked-word head ({unread[0]} is "
            "missing); expected a checkpoint of pretraining."
        )
    return MaskFiller(model, tokenizer)


def fill_mask(options, texts, *, progress=progress_module.silent):
    """Returns the report of fill_mask: every text with the words of its masks."""
    filler = load(options)
    lines = []
    for index, text in enumerate(texts):
        lines.append(text)
        for fillings in filler.fill(text, top_k=options.top_k):
            lines.append(
                "  "
                + "  ".join(f"{one.token} {one.probability:.3f}" for one in fillings)
            )
        progress("fill_mask", index + 1, len(texts), unit="text")
    return "\n".join(lines)


def _do_lower_case(options, folder):
    if options.do_lower_case is not None:
        return options.do_lower_case
    path = os.path.join(folder, "task.json")
    if not files.exists(path):
        return True
    with files.open_file(path) as file:
        recorded = json.load(file).get("do_lower_case")
    # A run on examples of the 2018 code does not know it.
    return True if recorded is None else recorded
