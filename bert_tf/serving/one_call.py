"""Vectors, filled masks and scores of texts, in one call."""

import dataclasses
from typing import Any

import numpy as np

from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.serving import predictors

_HEAD = "masked_lm"


def embed(
    source: str,
    texts: Any,
    *,
    dtype: str = "float32",
    backend: str = backends.TENSORFLOW,
    batch_size: int = 32,
    do_lower_case: bool | None = None,
) -> np.ndarray:
    """Returns one vector per text, float32 [N, H].

    A sentence encoder, or the run of a bi-encoder, says how its vectors are pooled and
    whether they have length 1; its default prompt is put before each text. For any
    other encoder, the vector is the mean over the word pieces, scaled to length 1.
    Texts longer than the model's limit are truncated. A literal [MASK], [SEP] or [CLS]
    in a text is split like any other text, as in 2018; sentence-transformers reads it
    as a special token.

    Each call loads the model. For several calls use `bert_tf.load(source).embed`.

    Args:
        source: a checkpoint in any format (folder or file), the name of a released
            model, or the output_dir of a run.
        texts: N texts, as a list or another iterable. The vectors are computed in
            batches of similar length and returned in the order of the texts.
        dtype: of the computation: "float32", "bfloat16" or "float16". The vectors are
            always float32.
        backend: "tensorflow", or "openvino" for Intel's library, which is faster on
            Intel processors (`pip install "bert_tf[openvino]"`).
        batch_size: texts of 128 word pieces per batch; a batch of shorter texts
            contains more of them, and one of longer texts fewer.
        do_lower_case: whether to lowercase the texts. None: as the checkpoint says, or
            else True, unless the vocabulary has cased pieces.

    Raises:
        OSError: a file cannot be read.
        ValueError: a text is wrong, or `source` is not a complete encoder.

    Example:
        >>> bert_tf.embed("bert-base-uncased", ["Rain.", "Sun."]).shape
        (2, 768)
    """
    items = given_data.read(texts, "a list of texts")
    settings = fine_tuning_predictor.LoadSettings(
        dtype=backends.policy_of(dtype),
        backend=backend,
        batch_size=fine_tuning_predictor.checked_count(batch_size, "batch_size"),
    )
    backends.check(backend, settings.dtype)
    start = starting_point.find(source, do_lower_case=do_lower_case)
    if start.source and start.source.text.output_activation is not None:
        raise ValueError(
            f"{source} scores pairs of texts and has no vectors for single texts; "
            "expected an encoder."
        )
    model = predictors.load_start(source, start, settings, head=predictors.ENCODER)
    # As sentence-transformers: only the default prompt.
    name = model.task.default_prompt_name
    prompts = {name: model.task.prompts[name]} if name is not None else {}
    model.task = dataclasses.replace(model.task, prompts=prompts)
    return model.embed(items)


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
