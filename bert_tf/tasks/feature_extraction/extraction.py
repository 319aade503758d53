"""Runs the encoder on texts and yields their vectors in order, in bounded memory.

Shape letters: B batch, S sequence, L extracted layers, H hidden, N heads, D = L H or H.
"""

import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from typing import cast

import numpy as np
import tensorflow as tf

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import packing
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import bert
from bert_tf.modeling import fusible
from bert_tf.modeling import pooling as pooling_module
from bert_tf.tasks.feature_extraction import examples
from bert_tf.tasks.feature_extraction import features as features_module
from bert_tf.tasks.feature_extraction import options as feature_extraction_options
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module

# Texts are sorted by length within groups of this many batches. Without pooling, the
# vectors of all pieces in a group are in memory at once, so groups are smaller.
BATCHES_SORTED_POOLED = 16
BATCHES_SORTED = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extracted:
    """What the encoder computes for one text."""

    input_ids: np.ndarray  # int32 [S], with [CLS] and [SEP] and without padding.
    vectors: np.ndarray | None = None  # float32 [S, L, H]; None with pooling.
    vector: np.ndarray | None = None  # float32 [D]; None without pooling.
    # float32 [S, L, N, S]: for each piece (first axis) the weights of all (last axis).
    attention_weights: np.ndarray | None = None


class Extractor:
    """Extracts vectors with a checkpoint's encoder.

    Args:
        options: what to extract.
        start: the opened checkpoint. None: `options` name it.
        progress: called during a download; see `bert_tf.progress`.

    Attributes:
        options: the options, with the settings of the checkpoint.
        config: `BertConfig`.
        vocabulary: `Vocabulary`.
        model: `BertModel`.

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
        progress: progress_module.Progress = progress_module.silent,
    ):
        start = start or starting_point.find(
            options.init_checkpoint,
            bert_config_file=options.bert_config_file,
            vocab_file=options.vocab_file,
            do_lower_case=options.do_lower_case,
            progress=progress,
        )
        self.config = start.config
        # `find` was given a checkpoint, so it returns a vocabulary and a source.
        self.vocabulary = cast(vocabulary_module.Vocabulary, start.vocabulary)
        source = cast(source_module.Source, start.source)
        self._prompt = ""
        if options.pooling == feature_extraction_options.OF_CHECKPOINT:
            self._prompt = source.text.prompt()
        self.options = options = _with_settings(options, source)
        policy = backends.policy_of(options.dtype)
        backends.check(options.backend, policy)
        self.config.check_sequence_length(options.max_seq_length)
        self._check_layers()
        if options.pooling != "none":
            pooling_module.check(options.pooling, self.config)
        self._tokenizer = in_graph.InGraphTokenizer(
            self.vocabulary, **start.tokenizer_arguments()
        )
        # OpenVINO is given a model in float32 and casts it itself.
        is_openvino = options.backend == backends.OPENVINO
        self.model = bert.BertModel(
            self.config, dtype="float32" if is_openvino else policy
        )
        report = loading.load_source(self.model, source)
        # Hugging Face's checkpoints may lack the pooler, which is not used here.
        missing = [name for name in report.missing if "/pooler/" not in name]
        if missing:
            raise ValueError(
                f"{report.path} lacks {len(missing)} of the encoder's weights, such "
                f"as {missing[0]}; expected a complete encoder."
            )
        fusible.use_fusible_activations(self.model)
        self._compute = backends.compiled(
            backends.with_constant_weights(self._outputs, self.model),
            features_module.COLUMNS,
            backend=options.backend,
            policy=policy,
        )

    def extract_each(self, lines: Iterable[examples.TextLine]) -> Iterator[Extracted]:
        """Yields the vectors of each text, in order.

        Args:
            lines: the texts, consumed as they are needed.

        Raises:
            ValueError: the first text of a pair leaves no room for the second; the
                message says where.
        """
        lines = iter(lines)
        is_pooled = self.options.pooling != "none"
        batches = BATCHES_SORTED_POOLED if is_pooled else BATCHES_SORTED
        while part := list(itertools.islice(lines, batches * self.options.batch_size)):
            yield from self._extract(part)

    def _check_layers(self):
        num_layers = self.config.num_hidden_layers
        for layer in self.options.layers:
            if not -num_layers <= layer < num_layers:
                raise ValueError(
                    f"--layers: layer {layer} does not exist. The model has "
                    f"{num_layers} layers; expected {-num_layers} to {num_layers - 1}."
                )

    def _outputs(self, features):
        """Returns the requested values of a batch, [B, ...], in a graph."""
        options = self.options
        counts = features[features_module.COUNTS]
        features = {name: features[name] for name in packing.ENCODER_COLUMNS}
        outputs = self.model(
            features, return_attention_weights=options.attention_weights
        )
        layers = [
            tf.cast(outputs["all_encoder_layers"][layer], tf.float32)
            for layer in options.layers
        ]
        if options.pooling == "none":
            found = {"vectors": tf.stack(layers, axis=2)}  # [B, S, L, H]
        else:
            is_sum = options.layer_combination == "sum"
            combined = tf.add_n(layers) if is_sum else tf.concat(layers, axis=-1)
            found = {
                "vector": pooling_module.pool(
                    {"sequence_output": combined}, counts, options.pooling
                )  # [B, D]
            }
        if options.attention_weights:
            weights = [outputs["attention_weights"][layer] for layer in options.layers]
            # [L, B, N, S, S] -> [B, S, L, N, S]
            found["attention_weights"] = tf.transpose(
                tf.stack(weights), [1, 3, 0, 2, 4]
            )
        return found

    def _extract(self, lines):
        windows, owners = [], []
        for index, rows in enumerate(self._windows(lines)):
            windows += rows
            owners += [index] * len(rows)
        found: list[list[tuple]] = [[] for _ in lines]
        for number, result in self._computed(windows):
            found[owners[number]].append((number, windows[number], result))
        texts = []
        for parts in found:
            # Back into the order of a text's windows.
            parts.sort(key=lambda part: part[0])
            texts.append(self._joined([part[1:] for part in parts]))
        if self.options.normalize:
            unit = pooling_module.normalize(np.stack([text.vector for text in texts]))
            texts = [
                dataclasses.replace(text, vector=vector)
                for text, vector in zip(texts, np.asarray(unit), strict=True)
            ]
        return texts

    def _windows(self, lines):
        """Yields the windows of each text."""
        ids_a = packing.token_ids(
            self._tokenizer, [f"{self._prompt}{line.text_a}" for line in lines]
        )
        ids_b = packing.token_ids(
            self._tokenizer, [line.text_b or "" for line in lines]
        )
        lengths = features_module.Lengths(
            max_seq_length=self.options.max_seq_length,
            doc_stride=self.options.doc_stride,
        )
        for line, first, second in zip(lines, ids_a, ids_b, strict=True):
            try:
                self.config.check_segments(1 if line.text_b is None else 2)
                yield features_module.windows(
                    first,
                    None if line.text_b is None else second,
                    lengths,
                    cls=self.vocabulary.cls_id,
                    sep=self.vocabulary.sep_id,
                )
            except ValueError as error:
                raise ValueError(f"{line.place}: {error}") from None

    def _computed(self, windows):
        """Yields (number of the window, its results), batched by length."""
        lengths = [len(window.ids) for window in windows]
        for numbers in fine_tuning_predictor.row_batches(
            lengths, self.options.batch_size
        ):
            found = self._compute(features_module.padded([windows[i] for i in numbers]))
            found = {name: np.asarray(values) for name, values in found.items()}
            for row, number in enumerate(numbers):
                yield number, {name: values[row] for name, values in found.items()}

    def _joined(self, parts):
        """Returns the `Extracted` of a text, from its windows and their results."""
        counted = [window.counts for window, _ in parts]
        ids = np.concatenate([window.ids[window.counts] for window, _ in parts])
        if self.options.pooling != "none":
            vectors = np.stack([result["vector"] for _, result in parts])
            weights = np.array([counts.sum() for counts in counted])
            values = {"vector": _pooled(vectors, weights, self.options.pooling)}
        else:
            kept = [
                result["vectors"][: len(counts)][counts]
                for counts, (_, result) in zip(counted, parts, strict=True)
            ]
            values = {"vectors": np.concatenate(kept)}
        if self.options.attention_weights:
            size = len(ids)  # There is one window: the options refuse doc_stride.
            weights = parts[0][1]["attention_weights"]
            values["attention_weights"] = weights[:size, :, :, :size].copy()
        return Extracted(input_ids=ids, **values)


def _with_settings(
    options: feature_extraction_options.ExtractionOptions, source: source_module.Source
) -> feature_extraction_options.ExtractionOptions:
    """Returns options with the settings of a sentence encoder's checkpoint."""
    text = source.text
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


def _pooled(vectors, weights, kind):
    """Returns a text's vector, float32 [D], from those of its windows, [windows, D].

    In a mean every piece counts once: a window's mean is weighted by its number of
    counted pieces. Every window has a [CLS]; their vectors are averaged.
    """
    if len(vectors) == 1:
        return vectors[0]
    if kind == "max":
        return vectors.max(axis=0)
    weights = weights if kind == "mean" else None
    return np.average(vectors, axis=0, weights=weights).astype(np.float32)
