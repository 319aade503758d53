"""Words behind [MASK]."""

import dataclasses
import numpy as np

from bert_tf import progress as progress_module
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import starting_point
from bert_tf.pretraining import model as pretraining_model
from bert_tf.tokenization import full

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


def load(options, *, progress=progress_module.silent):
    """Returns the `MaskFiller` of a checkpoint.

    Args:
        options: `run_options.FillMaskOptions`. Configuration, vocabulary and casing
            that it leaves out are those of the checkpoint.
        progress: see `bert_tf.progress`.

    Raises:
        ValueError, OSError: something is missing, or does not fit together.
    """
    start = starting_point.find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
        progress=progress,
    )
    tokenizer = full.FullTokenizer(
        start.vocabulary, do_lower_case=start.do_lower_case, never_split=(MASK,)
    )
    model = pretraining_model.BertPretrainer(start.config, next_sentence=False)
    report = loading.load_source(model, start.source)
    unread = [name for name in report.missing if name.startswith("cls/predictions")]
    if unread:
        raise ValueError(
            f"{options.init_checkpoint} has no masked-word head ({unread[0]} is "
            "missing); expected a checkpoint of pretraining."
        )
    return MaskFiller(model, tokenizer)


def fill_mask(options, texts, *, progress=progress_module.silent):
    """Returns the report of fill_mask: every text with the words of its masks."""
    filler = load(options, progress=progress)
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
