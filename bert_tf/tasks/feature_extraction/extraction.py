"""Runs the encoder on texts and yields their vectors in order, in bounded memory.

Shape letters: B batch, S sequence, L extracted layers, H hidden, N heads, D = L H.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import cast

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import packing
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import bert
from bert_tf.modeling import config as config_module
from bert_tf.modeling import inspection
from bert_tf.modeling import pooling as pooling_module
from bert_tf.tasks.feature_extraction import options as feature_extraction_options

_PAIR = re.compile(r"^(.*) \|\|\| (.*)$")
# Texts are sorted by length within groups of this many batches. Without pooling, the
# vectors of all pieces in a group are in memory at once, so groups are smaller.
BATCHES_SORTED_POOLED = 16
BATCHES_SORTED = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextLine:
    """One text, or two that form one sequence."""

    text_a: str
    text_b: str | None = None
    place: str = ""  # "file:line", for error messages.


def read_examples(path: str) -> Iterator[TextLine]:
    """Yields the texts of a file, one per line; an empty line is a text too.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not UTF-8; the message has file and line.

    Source: read_examples of extract_features.py, 2018.
    """
    for number, line in enumerate(files.read_lines(path), start=1):
        text_a, text_b = divided(line)
        yield TextLine(text_a=text_a, text_b=text_b, place=f"{path}:{number}")


def divided(line: str) -> tuple[str, str | None]:
    """Returns a line's text and None, or both texts of `A ||| B`.

    As in 2018, the last ` ||| ` separates them.
    """
    line = line.strip()
    match = _PAIR.match(line)
    return (match[1], match[2]) if match else (line, None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extracted:
    """What the encoder computes for one text."""

    input_ids: np.ndarray  # int32 [S], with [CLS] and [SEP] and without padding.
    vectors: np.ndarray | None = None  # float32 [S, L, H]; None with pooling.
    vector: np.ndarray | None = None  # float32 [D]; None without pooling.
    # float32 [S, L, N, S]: for each piece (first axis) the weights of all (last axis).
    attention_weights: np.ndarray | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Record(task_record.TaskRecord):
    KIND = "encoder"

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> bert.BertModel:
        return bert.BertModel(config, dtype=dtype)


class Extractor(fine_tuning_predictor.Predictor):
    """Extracts vectors with a checkpoint's encoder.

    Args:
        options: what to extract. The attribute has the settings of the checkpoint.
        start: the opened checkpoint. None: `options` name it.

    Raises:
        OSError: a file cannot be read.
        ValueError: the checkpoint lacks weights, a file that describes it, a requested
            layer, a pooling, or positions for max_seq_length.
    """

    def __init__(
        self,
        options: feature_extraction_options.ExtractionOptions,
        *,
        start: starting_point.StartingPoint | None = None,
    ):
        start = start or starting_point.find(
            options.init_checkpoint,
            bert_config_file=options.bert_config_file,
            vocab_file=options.vocab_file,
            do_lower_case=options.do_lower_case,
        )
        # `find` was given a checkpoint, so it returns a source.
        source = cast(source_module.Source, start.source)
        self._prompt = ""
        if options.pooling == feature_extraction_options.OF_CHECKPOINT:
            self._prompt = source.text.prompt()
        self.options = options = _with_settings(options, source)
        policy = backends.policy_of(options.dtype)
        backends.check(options.backend, policy)
        num_layers = start.config.num_hidden_layers
        for layer in options.layers:
            if not -num_layers <= layer < num_layers:
                raise ValueError(
                    f"--layers: layer {layer} does not exist. The model has "
                    f"{num_layers} layers; expected {-num_layers} to {num_layers - 1}."
                )
        if options.pooling != "none":
            pooling_module.check(options.pooling, start.config)
        settings = fine_tuning_predictor.LoadSettings(
            start=start,
            dtype=policy,
            backend=options.backend,
            batch_size=options.batch_size,
        )
        length, casing = options.max_seq_length, start.tokenizer_arguments()
        record = _Record(max_seq_length=length, **casing)
        super().__init__(options.init_checkpoint, record, settings=settings)
        self._has_constant_weights = True
        self._compute = self._compiled(self._outputs, packing.ENCODER_COLUMNS)

    def embed(self, lines: Sequence[TextLine]) -> np.ndarray:
        """Returns the pooled vectors of N texts in their order, float32 [N, D]."""
        extracted = self._answered(
            lines,
            self._extract,
            progress=progress_module.report,
            length_of=lambda line: len(line.text_a) + len(line.text_b or ""),
        )
        width = self.config.hidden_size * len(self.options.layers)
        vectors = [text.vector for text in extracted]
        return np.array(vectors, np.float32).reshape(len(vectors), width)

    def extract_each(self, lines: Iterable[TextLine]) -> Iterator[Extracted]:
        """Yields the vectors of each text, in order; `lines` are read when needed.

        Raises:
            ValueError: the model has one segment, and a text is a pair; the message
                says where.
        """
        lines = iter(lines)
        is_pooled = self.options.pooling != "none"
        batches = BATCHES_SORTED_POOLED if is_pooled else BATCHES_SORTED
        while part := list(itertools.islice(lines, batches * self.options.batch_size)):
            yield from self._extract(part)

    def _outputs(self, features):
        """Returns the requested values of a batch, [B, ...], in a graph."""
        options = self.options
        outputs = self.model(features)
        layers = [
            tf.cast(outputs["all_encoder_layers"][layer], tf.float32)
            for layer in options.layers
        ]
        if options.pooling == "none":
            values = {"vectors": tf.stack(layers, axis=2)}  # [B, S, L, H]
        else:
            values = {
                "vector": pooling_module.pool(
                    {"sequence_output": tf.concat(layers, axis=-1)},
                    features["input_mask"],
                    options.pooling,
                )  # [B, D]
            }
        if options.attention_weights:
            by_layer = inspection.attention_weights(self.model, features, outputs)
            weights = [by_layer[layer] for layer in options.layers]
            # [L, B, N, S, S] -> [B, S, L, N, S]
            values["attention_weights"] = tf.transpose(
                tf.stack(weights), [1, 3, 0, 2, 4]
            )
        return values

    def _extract(self, lines):
        """Returns what is extracted from each line, computed in batches by length."""
        rows = self._rows(lines)
        lengths = [len(row.pieces) for row in rows]
        texts: list[Extracted | None] = [None] * len(rows)
        for batch in fine_tuning_predictor.row_batches(
            lengths, self.options.batch_size
        ):
            features = packing.padded_features(
                [rows[index] for index in batch], max(lengths[i] for i in batch)
            )
            outputs = self._compute(features)
            outputs = {name: np.asarray(values) for name, values in outputs.items()}
            if self.options.normalize:
                # Here, because OpenVINO may compute in bfloat16.
                unit = pooling_module.normalize(outputs["vector"])
                outputs["vector"] = np.asarray(unit)
            for row, index in enumerate(batch):
                texts[index] = _without_padding(
                    rows[index].pieces,
                    {name: values[row] for name, values in outputs.items()},
                )
        return texts

    def _rows(self, lines):
        ids_a = packing.token_ids(
            self.tokenizer, [f"{self._prompt}{line.text_a}" for line in lines]
        )
        ids_b = packing.token_ids(self.tokenizer, [line.text_b or "" for line in lines])
        rows = []
        for line, first, second in zip(lines, ids_a, ids_b, strict=True):
            num_pieces = len(first) + len(second) + (2 if line.text_b is None else 3)
            self._num_truncated += num_pieces > self.options.max_seq_length
            try:
                task_record.check_segments(self.config, 1 if line.text_b is None else 2)
            except ValueError as error:
                raise ValueError(f"{line.place}: {error}") from None
            rows.append(
                packing.pack_pair(
                    first,
                    None if line.text_b is None else second,
                    max_seq_length=self.options.max_seq_length,
                    cls=self.vocabulary.cls_id,
                    sep=self.vocabulary.sep_id,
                )
            )
        return rows


def _with_settings(
    options: feature_extraction_options.ExtractionOptions, source: source_module.Source
) -> feature_extraction_options.ExtractionOptions:
    """Returns options with the settings of a sentence encoder's checkpoint."""
    text = source.encoder_text
    if text.max_seq_length and not options_module.is_given(options.max_seq_length):
        options = dataclasses.replace(options, max_seq_length=text.max_seq_length)
    if options.pooling != feature_extraction_options.OF_CHECKPOINT:
        return options
    if text.pooling is None:
        raise ValueError(
            f"--pooling={options.pooling}, but {source.path} does not say how its "
            "vectors are pooled; pass --pooling=cls, mean or max."
        )
    return dataclasses.replace(
        options, pooling=text.pooling, normalize=bool(text.normalize), layers=(-1,)
    )


def _without_padding(ids, outputs):
    """Returns the `Extracted` of a text, from its row of each output."""
    size = len(ids)
    if "vectors" in outputs:
        outputs["vectors"] = outputs["vectors"][:size].copy()
    if "attention_weights" in outputs:
        weights = outputs["attention_weights"]
        outputs["attention_weights"] = weights[:size, :, :, :size].copy()
    return Extracted(input_ids=np.array(ids, np.int32), **outputs)
