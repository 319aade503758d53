"""Ranks passages: search with a bi-encoder, reranking with a cross-encoder."""

import os
from collections.abc import Sequence

import numpy as np

from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.modeling import heads
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import encoding
from bert_tf.tasks.retrieval import passage_index
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.tasks.retrieval import task as retrieval_task
from bert_tf.tokenization import vocabulary as vocabulary_module


class Retriever:
    """Finds passages by their vectors, which it stores in a folder.

    Args:
        model: built `BertBiEncoder`.
        encoder: applies the model to texts.
        task: the model's task.
        vocabulary: the model's vocabulary.
        checkpoint: name of the checkpoint, recorded for information only.
    """

    def __init__(
        self,
        model: heads.TaskModel,
        encoder: encoding.TextEncoder,
        *,
        task: retrieval_task.Task,
        vocabulary: vocabulary_module.Vocabulary,
        checkpoint: str,
    ):
        self._model = model
        self._encoder = encoder
        self._task = task
        self._vocabulary = vocabulary
        self._checkpoint = checkpoint

    def index(
        self,
        corpus: corpus_module.Corpus,
        folder: str,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> passage_index.PassageIndex:
        """Returns the vectors of a corpus, computed if the folder does not have them.

        Args:
            corpus: the passages.
            folder: path of the folder that contains the vectors.
            progress: called with the number of passages embedded.

        Raises:
            OSError: the vectors cannot be written.
        """
        made_by = passage_index.fingerprint(
            self._model,
            self._task,
            self._vocabulary,
            checkpoint=self._checkpoint,
            corpus=corpus,
        )
        index = passage_index.find(folder, made_by)
        if index is not None:
            return index
        path = os.path.join(folder, passage_index.VECTORS_FILE)
        with locks.output_file(path, waits=True):
            # Another process may have written it in the meantime.
            if not passage_index.is_made_by(folder, made_by):
                passage_index.write(
                    folder,
                    corpus,
                    self._encoder.passages(corpus.passages, progress=progress),
                    width=self._model.config.hidden_size,
                    made_by=made_by,
                )
            return passage_index.PassageIndex(path)

    def rank(
        self,
        queries: Sequence[str],
        index: passage_index.PassageIndex,
        top_k: int,
        *,
        search: str = "exact",
        progress: progress_module.Progress = progress_module.silent,
    ) -> search_module.Neighbors:
        """Returns the best passages of each query; see `search.search`.

        Args:
            queries: N queries.
            index: the vectors of the corpus.
            top_k: number of passages per query.
            search: kind of search.
            progress: called with the number of queries embedded and passages searched.
        """
        vectors = self._encoder.queries(queries, progress=progress)
        return search_module.search(
            vectors, index, top_k, kind=search, progress=progress
        )


def rerank(
    scorer: encoding.PairScorer,
    queries: Sequence[str],
    found: search_module.Neighbors,
    passages: Sequence[str],
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> search_module.Neighbors:
    """Returns the passages found, reordered by the scores of a cross-encoder.

    Args:
        scorer: applies the cross-encoder to pairs.
        queries: N queries.
        found: K passages for each query.
        passages: the texts of the whole corpus.
        progress: called with the number of pairs scored.
    """
    num_found = found.numbers.shape[1]
    scores = scorer.scores(
        [query for query in queries for _ in range(num_found)],
        [passages[number] for number in found.numbers.ravel()],
        progress=progress,
    ).reshape(found.numbers.shape)
    order = np.argsort(-scores, axis=1, kind="stable")
    return search_module.Neighbors(
        numbers=np.take_along_axis(found.numbers, order, axis=1),
        scores=np.take_along_axis(scores, order, axis=1),
    )
