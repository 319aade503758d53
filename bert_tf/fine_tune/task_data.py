"""The data of each task, as a caller gives it, as files that the task can read.

Each function sets the options of a run that name its data.
"""

from typing import Any

from bert_tf.data import in_memory
from bert_tf.fine_tune import run as run_module
from bert_tf.fine_tuning import given_data
from bert_tf.tasks.retrieval import examples as examples_module

TRAIN, VALIDATION = "train", "validation"


def give_queries(run: run_module.Run, train: Any, validation: Any, corpus: Any) -> None:
    """Sets the data of run_retrieval; see `fine_tune.retrieve`."""
    rows = _query_rows(train)
    held_out: list[dict[str, Any]] = []
    if given_data.is_share(validation):
        texts = [[str(row.get("query"))] for row in rows]
        rows, held_out = run.divided(rows, texts, validation)
        train = None
    elif validation is not None:
        held_out = _query_rows(validation)
    path = given_data.file_path(train)
    run.values["train_file"] = path or _queries(run, rows, TRAIN)
    if validation is not None:
        path = given_data.file_path(validation)
        path = path or _queries(run, held_out, VALIDATION)
        run.values |= {"eval_file": path, "do_eval": True}
    run.values["corpus_file"] = _corpus_file(run, corpus, [*rows, *held_out])


def _query_rows(data):
    path = given_data.file_path(data)
    if path is None:
        forms = (("query", "passage"), ("query", "passage", "negatives"))
        return in_memory.rows_of(data, forms)
    return [
        {
            "id": example.guid,
            "query": example.query,
            "passage": example.passage,
            "negatives": list(example.negatives) or None,
        }
        for example in examples_module.read_examples(path, TRAIN)
    ]


def _queries(run, rows, name):
    columns = (("query", "passage"), ("negatives", "id"))
    content = given_data.json_lines(rows, *columns)
    return run.add_file(f"{name}.jsonl", content, trains=name == TRAIN)


def _corpus_file(run, corpus, rows):
    """Returns the path of the passages to search; without a corpus, those of rows."""
    path = given_data.file_path(corpus)
    if path is not None:
        return path
    if corpus is None:
        passages = dict.fromkeys(str(row.get("passage")) for row in rows)
        found = [{"passage": text} for text in passages]
    elif in_memory.is_table(corpus):
        found = in_memory.rows_of(corpus, ())
    else:
        found = [
            {"passage": item} if isinstance(item, str) else item for item in corpus
        ]
        found = in_memory.rows_of(found, (("passage",), ("id", "passage")))
    content = given_data.json_lines(found, ("passage",))
    return run.add_file(given_data.CORPUS, content, trains=True)
