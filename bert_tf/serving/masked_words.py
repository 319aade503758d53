"""Fills masks and scores texts with a masked-word model, in one call."""

from typing import Any

from bert_tf.serving import predictors

_HEAD = "masked_lm"


def fill_masks(
    source: str,
    texts: Any,
    top_k: int = 5,
    *,
    dtype: str = "float32",
    batch_size: int = 32,
) -> list[dict[str, Any]]:
    """Returns the most likely word pieces for each [MASK] of each text.

    Args:
        source: a pretrained checkpoint in any format (folder or file), the name of a
            released model, or the output_dir of a pretraining run.
        texts: texts with at least one [MASK] each, as a list or another iterable.
        top_k: number of pieces per mask.
        dtype: "mixed_bfloat16" and "mixed_float16" are faster on accelerators.
        batch_size: texts per batch.

    Returns:
        For each text `{"masks": [[{"token": "france", "probability": 0.9}, ...]]}`: a
        list for each mask, with the most likely piece first.

    Raises:
        OSError: a file cannot be read.
        ValueError: a text has no [MASK] or is too long, or `source` cannot fill masks.

    Example:
        >>> bert_tf.fill_masks("bert-base-uncased", ["Paris is in [MASK]."], top_k=1)
        [{'masks': [[{'token': 'france', 'probability': 0.8}]]}]
    """
    model = predictors.load(source, head=_HEAD, dtype=dtype, batch_size=batch_size)
    return model.predict(texts, top_k=top_k)


def score_texts(
    source: str,
    texts: Any,
    *,
    dtype: str = "float32",
    batch_size: int = 32,
) -> list[dict[str, Any]]:
    """Returns how likely each text is according to a masked-word model.

    Each word piece is masked in turn. The pseudo-log-likelihood is the sum of the
    log-probabilities of the pieces; see `pretraining.predictor`.

    Args:
        source: see `fill_masks`.
        texts: texts without [MASK], as a list or another iterable.
        dtype: see `fill_masks`.
        batch_size: sequences per batch. A text of n pieces becomes n sequences.

    Returns:
        For each text a dictionary with `pseudo_log_likelihood`, its means `per_piece`
        and `per_word`, and `pieces`: a list of {"token", "log_probability"}.

    Raises:
        OSError: a file cannot be read.
        ValueError: a text is empty, contains [MASK] or is too long, or `source` cannot
            fill masks.

    Example:
        >>> a, b = bert_tf.score_texts("bert-base-uncased", ["I am he.", "I is he."])
        >>> a["pseudo_log_likelihood"] > b["pseudo_log_likelihood"]
        True
    """
    model = predictors.load(source, head=_HEAD, dtype=dtype, batch_size=batch_size)
    return model.score(texts)
