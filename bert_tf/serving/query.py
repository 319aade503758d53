"""Sends queries from the command line or a file to an exported model."""

import functools
import itertools
import json
import os
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import cast

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.serving import client
from bert_tf.serving import options as serving_options

# The inputs of all models; other fields of a JSON line are copied to its answer.
INPUTS = ("text", "text_b", "endings", "question", "context")
# Files in these formats would be read as lines of plain text.
_UNSUPPORTED_EXTENSIONS = (".csv", ".json")


def run(
    options: serving_options.QuerySavedModelOptions,
    *,
    lines: Iterable[str] | None = None,
) -> str:
    """Returns the model's answers, one JSON object per line.

    Args:
        options: the queries and the model.
        lines: the lines for `--text=-` or `--question=-`; None: standard input.

    Returns:
        Each query with its answer, in order, such as
        `{"text": ..., "label": ..., "probabilities": {name: p}}`; see
        `client.Client.ask`. With an output_file, which then has these lines, a report.

    Raises:
        OSError: a file or the model cannot be read, or its server cannot be reached.
        ValueError: there is no text, or the model does not take these inputs.
    """
    if options.input_file is not None:
        total = _count(options.input_file)
        batches = _batches(options.input_file, options.batch_size)
    else:
        inputs = _inputs(options, lines)
        rows = zip(*inputs.values(), strict=True)
        queries = [dict(zip(inputs, row, strict=True)) for row in rows]
        total = len(queries)
        batches = iter([queries])
    # The options allow exactly one of the two.
    if options.server is not None:
        model = client.open_server(options.server, options.connection_settings())
    else:
        model = client.open_saved_model(cast(str, options.export_dir))
    model.batch_size = options.batch_size
    answers = _answers(
        functools.partial(model.ask, signature=options.signature),
        batches,
        total,
    )
    if options.output_file is None:
        return "\n".join(answers)
    with files.complete_or_absent(options.output_file) as file:
        file.writelines(f"{answer}\n" for answer in answers)
    return f"Answers: {options.output_file} ({total} lines)"


def _answers(ask, batches, total) -> Iterator[str]:
    done = 0
    for batch in batches:
        # The same names in every query of a batch.
        names = [name for name in batch[0] if name in INPUTS]
        answers = ask(**{name: [query[name] for query in batch] for name in names})
        for query, answer in zip(batch, answers, strict=True):
            for name in query.keys() & answer.keys():
                raise ValueError(
                    f"A query has a field {name!r}, and so has the answer; rename it "
                    "in the input file."
                )
            yield json.dumps(query | answer, ensure_ascii=False)
        done += len(batch)
        progress_module.report("query", done, total, unit="queries")


def _inputs(options, lines):
    """Returns the model's inputs by name, as lists."""
    from_stdin = (serving_options.FROM_STDIN,)
    if options.question == from_stdin:
        return _from_lines(lines, ("question", "context"), least=2)
    if options.text == from_stdin:
        return _from_lines(lines, ("text", "text_b"), least=1)
    if options.question:
        count = len(options.question)
        contexts = options.context * (count if len(options.context) == 1 else 1)
        return {"question": list(options.question), "context": list(contexts)}
    inputs = {"text": list(options.text)}
    if options.ending:
        inputs["endings"] = [list(options.ending)]
    if options.text_b:
        inputs["text_b"] = list(options.text_b)
    return inputs


def _from_lines(lines, names, *, least):
    """Returns tab-separated columns by name; the last may be missing in all lines."""
    lines = files.read_stdin_lines() if lines is None else lines
    rows = [line.rstrip("\r\n").split("\t") for line in lines]
    widths = {len(row) for row in rows}
    if not rows:
        raise ValueError(f"Standard input is empty; expected one {names[0]} per line.")
    if widths - set(range(least, 3)) or len(widths) > 1:
        expected = (
            "one text in every line, or two separated by a tab in every line"
            if least == 1
            else f"a {names[0]}, a tab and a {names[1]} in every line"
        )
        raise ValueError(
            f"Standard input: expected {expected}, got lines with "
            + " and ".join(map(str, sorted(widths)))
            + " columns."
        )
    columns = zip(*rows, strict=True)
    return {name: list(column) for name, column in zip(names, columns, strict=False)}


def _count(path: str) -> int:
    """Returns the number of queries in a file, which are checked."""
    extension = os.path.splitext(path)[1].lower()
    if extension in _UNSUPPORTED_EXTENSIONS:
        raise ValueError(
            f"{path}: expected one text per line, or two separated by a tab, or a "
            f".jsonl file; {extension} files are not supported."
        )
    count = 0
    names = None
    for count, query in enumerate(_queries(path), start=1):
        found = [name for name in query if name in INPUTS]
        names = names or found
        if set(found) != set(names):
            raise ValueError(
                f"{path}, line {count}: the query has {' and '.join(found)}; expected "
                f"{' and '.join(names)}, as in line 1."
            )
    if not count:
        raise ValueError(f"{path} is empty; expected one query per line.")
    return count


def _batches(path: str, batch_size: int) -> Iterator[list[dict[str, Any]]]:
    """Yields the queries of a file, `batch_size` at a time."""
    queries = _queries(path)
    while batch := list(itertools.islice(queries, batch_size)):
        yield batch


def _queries(path):
    read = _from_json if os.fspath(path).lower().endswith(".jsonl") else _from_columns
    for number, line in enumerate(files.read_lines(path), start=1):
        yield read(line, f"{path}, line {number}")


def _from_columns(line, place):
    columns = line.split("\t")
    if len(columns) > 2:
        raise ValueError(
            f"{place}: expected one text, or two separated by a tab, got "
            f"{len(columns)} columns."
        )
    return dict(zip(("text", "text_b"), columns, strict=False))


def _from_json(line, place):
    query = files.parse_json(line, place, advice="expected one JSON object per line")
    if not isinstance(query, dict) or not set(INPUTS) & set(query):
        raise ValueError(
            f"{place}: expected an object with the model's inputs, such as "
            f'{{"text": "..."}}, got {line[:80]}.'
        )
    for name in set(INPUTS) & set(query):
        value = query[name]
        texts = value if name == "endings" and isinstance(value, list) else [value]
        is_text = name != "endings" or isinstance(value, list)
        if not is_text or not all(isinstance(text, str) for text in texts):
            expected = "a list of texts" if name == "endings" else "a text"
            raise ValueError(f"{place}: {name} must be {expected}, got {value!r:.80}.")
    return query
