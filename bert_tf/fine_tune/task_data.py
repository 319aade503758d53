"""The data of each task, as a caller gives it, as files that the task can read.

Each function sets the options of a run that name its data.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf.data import in_memory
from bert_tf.fine_tune import run as run_module
from bert_tf.fine_tuning import given_data
from bert_tf.tasks.question_answering import records as question_answering_records
from bert_tf.tasks.retrieval import examples as examples_module

TRAIN, VALIDATION = "train", "validation"


def give_questions(run: run_module.Run, train: Any, validation: Any) -> None:
    """Sets the data of run_squad; see `fine_tune.answer_questions`."""
    if given_data.is_share(validation):
        rows = _question_rows(train)
        texts = [[str(row.get("context"))] for row in rows]
        sides = run.divided(rows, texts, validation)
        paths = [
            _squad_file(run, side, name)
            for side, name in zip(sides, (TRAIN, VALIDATION), strict=True)
        ]
    else:
        given = [train] if validation is None else [train, validation]
        paths = [
            _squad_path(data) or _squad_file(run, _question_rows(data), name)
            for data, name in zip(given, (TRAIN, VALIDATION), strict=False)
        ]
    run.values["train_file"] = (paths[0],)
    if validation is not None:
        run.values |= {"predict_file": paths[1], "do_eval": True}


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


def _squad_path(data):
    """Returns the path of a SQuAD file; None for other data."""
    return None if given_data.is_table_or_in_memory(data) else os.fspath(data)


def _question_rows(data):
    path = _squad_path(data)
    if path is not None:
        return question_answering_records.records_of(files.read_json(path), path)
    if isinstance(data, Mapping) and "data" in data:
        return question_answering_records.records_of(data, "the data")
    return given_data.rows_of(data, question_answering_records.FORMS)


def _squad_file(run, rows, name):
    content = question_answering_records.squad_of(rows)
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    return run.add_file(f"{name}.json", text.encode("utf-8"), trains=name == TRAIN)


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
