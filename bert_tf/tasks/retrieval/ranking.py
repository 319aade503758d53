"""Rankings of a corpus: a bi-encoder's search, and a cross-encoder's second look."""

import os
from collections.abc import Sequence

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import encoding
from bert_tf.tasks.retrieval import passage_index
from bert_tf.tasks.retrieval import search as search_module


class Retriever:
    """Finds passages by their vectors, which it keeps in a folder.

    Args:
        model: built `BertBiEncoder`.
        encoder: `encoding.TextEncoder` of it.
        task: `task.Task`.
        vocabulary: `Vocabulary`.
        checkpoint: where the weights are from, for the reader.
    """

    def __init__(self, model, encoder: encoding.TextEncoder, **about):
        self._model = model
        self._encoder = encoder
        self._about = about

    def index(
        self,
        corpus: corpus_module.Corpus,
        folder: str,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> passage_index.PassageIndex:
        """Returns the vectors of a corpus: those in the folder, or newly made there.

        Args:
            corpus: the passages.
            folder: path of a folder, for the vectors.
            progress: told how many passages are done.

        Raises:
            OSError: they cannot be written.
        """
        made_by = passage_index.fingerprint(self._model, corpus=corpus, **self._about)
        if not passage_index.is_made_by(folder, made_by):
            passage_index.write(
                folder,
                corpus,
                self._encoder.passages(corpus.passages, progress=progress),
                width=self._model.config.hidden_size,
                made_by=made_by,
            )
        path = os.path.join(folder, passage_index.VECTORS_FILE)
        return passage_index.PassageIndex(path)

    def rank(
        self,
        queries: Sequence[str],
        index: passage_index.PassageIndex,
        top_k: int,
        *,
        search: str = "exact",
        progress: progress_module.Progress = progress_module.silent,
    ) -> search_module.Neighbours:
        """Returns the best passages of each query; see `search.search`."""
        vectors = self._encoder.queries(queries, progress=progress)
        return search_module.search(
            vectors, index, top_k, kind=search, progress=progress
        )


def rerank(
    scorer: encoding.PairScorer,
    queries: Sequence[str],
    found: search_module.Neighbours,
    passages: Sequence[str],
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> search_module.Neighbours:
    """Returns the passages that were found, in the order of a cross-encoder's scores.

    Args:
        scorer: of the cross-encoder.
        queries: N queries.
        found: K passages of each.
        passages: texts of the whole corpus.
        progress: told how many pairs are done.
    """
    num_found = found.numbers.shape[1]
    scores = scorer.scores(
        [query for query in queries for _ in range(num_found)],
        [passages[number] for number in found.numbers.ravel()],
        progress=progress,
    ).reshape(found.numbers.shape)
    order = np.argsort(-scores, axis=1, kind="stable")
    return search_module.Neighbours(
        numbers=np.take_along_axis(found.numbers, order, axis=1),
        scores=np.take_along_axis(scores, order, axis=1),
    )
