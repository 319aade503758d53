"""Questions from the command line to an exported model, and its answers."""

import json

from bert_tf import files
from bert_tf.serving import client
from bert_tf.serving import options as serving_options


def run(options: serving_options.QuerySavedModelOptions, *, lines=None) -> str:
    """Returns the model's answers, a JSON object a line.

    Args:
        options: what to ask, and whom.
        lines: the lines of `--text=-` or `--question=-`; None for those of standard
            input.

    Returns:
        What was asked, and the answer as `client.Client.ask` gives it, such as
        `{"text": ..., "label": ..., "probabilities": {name: p}}`, in the order of the
        questions.

    Raises:
        OSError: the model cannot be read, or its server not be reached.
        ValueError: there is no text, or the model does not take these.
    """
    inputs = _inputs(options, lines)
    asked = (
        client.open_server(options.server)
        if options.export_dir is None
        else client.open_saved_model(options.export_dir)
    )
    answers = asked.ask(**inputs)
    questions = zip(*inputs.values(), strict=True)
    return "\n".join(
        json.dumps(
            dict(zip(inputs, question, strict=True)) | answer, ensure_ascii=False
        )
        for question, answer in zip(questions, answers, strict=True)
    )


def _inputs(options, lines):
    """Returns the inputs of the model by name, a list each."""
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
    """Returns what stands between tabs, by name; the second may be left out of all."""
    lines = files.read_stdin_lines() if lines is None else lines
    rows = [line.rstrip("\r\n").split("\t") for line in lines]
    widths = {len(row) for row in rows}
    if not rows:
        raise ValueError(f"Standard input has no line; expected a {names[0]} a line.")
    if widths - set(range(least, 3)) or len(widths) > 1:
        expected = (
            "one text in every line, or two with a tab between"
            if least == 1
            else f"a {names[0]}, a tab and a {names[1]} in every line"
        )
        raise ValueError(
            f"Standard input: expected {expected}, got lines with "
            + " and ".join(map(str, sorted(widths)))
            + "."
        )
    columns = zip(*rows, strict=True)
    return {name: list(column) for name, column in zip(names, columns, strict=False)}
