"""Sends queries from the command line or a file to an exported model."""

import json
from collections.abc import Iterator
from typing import Any
from typing import cast

from bert_tf import files
from bert_tf.serving import client
from bert_tf.serving import options as serving_options

# The inputs of all models; other fields of a JSON line are copied to its answer.
INPUTS = ("text", "text_b", "endings", "question", "context")


def run(options: serving_options.QuerySavedModelOptions) -> str:
    """Returns each query and its answer (`client.Client.ask`), a JSON object per line.

    Raises:
        OSError: a file or the model cannot be read, or its server cannot be reached.
        ValueError: there is no text, or the model does not take these inputs.
    """
    queries = _queries(options)  # Checked before the model is loaded.
    # The options allow exactly one of the two.
    if options.server is not None:
        model = client.open_server(
            options.server, options.timeout_seconds, options.header
        )
    else:
        model = client.open_saved_model(cast(str, options.export_dir))
    # The same names in every query.
    names = [name for name in queries[0] if name in INPUTS]
    columns = {name: [query[name] for query in queries] for name in names}
    answers = model.answers(signature=options.signature, **columns)
    # All answers have the same names, so the first one shows what is wrong.
    fields: set[str] = set().union(*queries)
    lines = []
    for query, answer in zip(queries, answers, strict=True):
        for name in fields & answer.keys():
            raise ValueError(
                f"A query has a field {name!r}, and so has the answer; rename it in "
                "the input file."
            )
        lines.append(json.dumps(query | answer, ensure_ascii=False))
    return "\n".join(lines)


def _queries(options) -> list[dict[str, Any]]:
    """Returns the queries, each with the model's inputs by name."""
    if options.input_file is not None:
        return list(_read(options.input_file))
    count = len(options.question)
    columns = {
        "text": options.text,
        "text_b": options.text_b,
        "question": options.question,
        "context": options.context * (count if len(options.context) == 1 else 1),
    }
    columns = {name: column for name, column in columns.items() if column}
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _read(path: str) -> Iterator[dict[str, Any]]:
    """Yields the queries of a file of JSON lines, which are checked."""
    first: set[str] = set()
    for number, line in enumerate(files.read_lines(path), start=1):
        place = f"{path}, line {number}"
        query = _query(line, place)
        names = query.keys() & set(INPUTS)
        first = first or names
        if names != first:
            raise ValueError(
                f"{place}: the query has {' and '.join(sorted(names))}; expected "
                f"{' and '.join(sorted(first))}, as in line 1."
            )
        yield query
    if not first:
        raise ValueError(f"{path} is empty; expected one query per line.")


def _query(line, place):
    """Returns the query of a line."""
    query = files.parse_json(line, place, advice="expected one JSON object per line")
    if not isinstance(query, dict) or not set(INPUTS) & set(query):
        raise ValueError(
            f"{place}: expected an object with the model's inputs, such as "
            f'{{"text": "..."}}, got {line[:80]}.'
        )
    for name in set(INPUTS) & set(query):
        value = query[name]
        texts = value if name == "endings" else [value]
        if not isinstance(texts, list) or not all(isinstance(x, str) for x in texts):
            expected = "a list of texts" if name == "endings" else "a text"
            raise ValueError(f"{place}: {name} must be {expected}, got {value!r:.80}.")
    return query
