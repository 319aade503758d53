"""Questions from the command line to an exported model, and its answers."""

import json

from bert_tf import files
from bert_tf.serving import client
from bert_tf.serving import options as serving_options


def run(options: serving_options.QuerySavedModelOptions, *, lines=None) -> str:
    """Returns the model's answers, a JSON object a line.

    Args:
        options: what to ask, and whom.
        lines: the lines of `--text=-`; None for those of standard input.

    Returns:
        `{"text": ..., "label": ..., "probabilities": {name: p}}`, with `text_b` for
        pairs, in the order of the texts.

    Raises:
        OSError: the model cannot be read, or its server not be reached.
        ValueError: there is no text, or the model does not take these.
    """
    texts, texts_b = _questions(
        options, files.read_stdin_lines() if lines is None else lines
    )
    asked = (
        client.open_server(options.server)
        if options.export_dir is None
        else client.open_saved_model(options.export_dir)
    )
    answers = asked.predict(texts, texts_b)
    return "\n".join(
        json.dumps(record, ensure_ascii=False)
        for record in _records(texts, texts_b, answers)
    )


def _questions(options, lines):
    """Returns the texts, and the second texts or None."""
    if options.text != (serving_options.FROM_STDIN,):
        return list(options.text), list(options.text_b) or None
    rows = [line.rstrip("\r\n").split("\t") for line in lines]
    widths = {len(row) for row in rows}
    if not rows:
        raise ValueError("Standard input has no line; expected a text a line.")
    if widths - {1, 2} or len(widths) > 1:
        raise ValueError(
            "Standard input: expected one text in every line, or two with a tab "
            "between, got lines with " + " and ".join(map(str, sorted(widths))) + "."
        )
    texts_b = [row[1] for row in rows] if widths == {2} else None
    return [row[0] for row in rows], texts_b


def _records(texts, texts_b, answers):
    for index, answer in enumerate(answers):
        record = {"text": texts[index]}
        if texts_b is not None:
            record["text_b"] = texts_b[index]
        yield record | answer
