"""fill_mask on one page: read texts, fill their masks or score them, report."""

import json
from collections.abc import Iterator
from typing import Any

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.pretraining import likelihood
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import predictions

STANDARD_INPUT = "-"


def run(
    options: pretraining_options.FillMaskOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Fills the masks of texts, or scores texts, as the options say.

    Args:
        options: what to do.
        progress: see `bert_tf.progress`.

    Returns:
        The report: each text with its result, or the file with the results.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: a text or the checkpoint is unsuitable.
    """
    texts = _read_texts(options)
    if options.output_file is None:
        filler = predictions.load(options, progress=progress)
        records = _records(options, filler, texts, progress)
        return "\n".join(line for record in records for line in _lines(record))
    with locks.output_file(options.output_file):
        filler = predictions.load(options, progress=progress)
        with files.complete_or_absent(options.output_file) as file:
            for record in _records(options, filler, texts, progress):
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return f"The results for {len(texts)} texts are in {options.output_file}."


def _read_texts(options):
    """Returns (place for messages, text) of each line that is not blank."""
    if options.text not in (None, STANDARD_INPUT):
        return [("", options.text)]
    place = options.input_file or "standard input"
    lines = (
        files.read_stdin_lines()
        if options.input_file is None
        else files.read_lines(options.input_file)
    )
    texts = [
        (f"{place}:{number}: ", line.strip())
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not texts:
        raise ValueError(f"{place} has no text; expected one text per line.")
    return texts


def _records(
    options: pretraining_options.FillMaskOptions,
    filler: predictions.MaskFiller,
    texts: list[tuple[str, str]],
    progress: progress_module.Progress,
) -> Iterator[dict[str, Any]]:
    """Yields the result for each text as a dict for JSON."""
    at = _Place(texts)
    found: Iterator[Any]
    as_record: Any
    if options.pseudo_log_likelihood:
        found = likelihood.LikelihoodScorer(filler).score_each(at)
        as_record = likelihood.record
    elif options.iterative:
        found = (filler.fill_iteratively(text, top_k=options.top_k) for text in at)
        as_record = _filled_record
    else:
        found = filler.fill_each(at, top_k=options.top_k)
        as_record = predictions.record
    for index in range(len(texts)):
        try:
            result = next(found)
        except ValueError as error:
            raise ValueError(f"{at.place}{error}") from None
        yield {"text": texts[index][1]} | as_record(result)
        progress("fill masks", index + 1, len(texts), unit="texts")


class _Place:
    """Iterates over texts and remembers where the last one came from."""

    def __init__(self, texts):
        self._texts = texts
        self.place = ""

    def __iter__(self):
        for place, text in self._texts:
            self.place = place
            yield text


def _filled_record(filled):
    return (
        {"filled": filled.text}
        | predictions.record(filled.fillings)
        | {"order": filled.order}
    )


def _lines(record):
    """Yields the lines of the report for one record."""
    yield record["text"]
    if "filled" in record:
        yield f"  {record['filled']}"
    for mask in record.get("masks", ()):
        yield "  " + "  ".join(
            f"{one['token']} {one['probability']:.3f}" for one in mask
        )
    if "pseudo_log_likelihood" in record:
        yield (
            f"  {record['pseudo_log_likelihood']:.4f}  per piece "
            f"{record['per_piece']:.4f}  per word {record['per_word']:.4f}"
        )
