"""Converts the Wikipedia part of TriviaQA into SQuAD's format, as the paper used it.

"The TriviaQA data we used consists of paragraphs from TriviaQA-Wiki formed of the first
400 tokens in documents, that contain at least one of the provided possible answers."
(Section 4.2 of the paper, footnote.) The paper does not say what a token is, nor which
occurrence of an answer is the right one. Here a token is a word between white space,
and the answer is the earliest occurrence of any alias, ignoring case.
"""

import collections
import dataclasses
import itertools
import json
import logging
import os
import re
from collections.abc import Iterable
from typing import Any

from bert_tf import files
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.data import squad_json
from bert_tf.options import option

logger = logging.getLogger(__name__)

_WORD = re.compile(r"\S+")
_NUM_WORDS = 400  # Of a document; longer ones are cut.
# Lists of names of an answer, besides its "Value".
_ALIASES = ("Aliases", "NormalizedAliases", "HumanAnswers")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertTriviaqaOptions(options_module.Options):
    """Converts the Wikipedia part of TriviaQA into SQuAD's format.

    As in the paper, a context is the beginning of a document that contains an answer.
    Train on the result first, then on SQuAD with --init_checkpoint=RUN.
    """

    qa_file: str = option(help="TriviaQA's qa/wikipedia-train.json or -dev.json.")
    evidence_dir: str = option(help="TriviaQA's folder evidence/wikipedia.")
    output_file: str = option(help="JSON file to write, in the format of SQuAD 1.1.")

    def __post_init__(self):
        super().__post_init__()
        options_module.check_not_overwritten(
            {"output_file": [self.output_file]}, {"qa_file": [self.qa_file]}
        )


def convert(options: ConvertTriviaqaOptions) -> str:
    """Writes the questions whose documents contain an answer; returns a report.

    Args:
        options: the files to read and write.

    Raises:
        OSError: a file cannot be read or written, or there is no document.
        ValueError: the file is not TriviaQA's, or no document contains an answer.
    """
    path, counts = options.qa_file, collections.Counter[str]()
    articles: dict[str, dict[str, Any]] = {}
    with files.open_file(path, "rb") as file:
        content = files.parse_json(
            file.read(), path, advice="expected TriviaQA's qa/wikipedia-train.json"
        )
    questions = squad_json.value(content, "Data", list, path)
    for number, question in enumerate(questions, start=1):
        place = f"{path}: question {number}"
        names = _names(question, place)
        for page in squad_json.value(question, "EntityPages", list, place):
            file_name = squad_json.value(page, "Filename", str, place)
            text = _first_words(os.path.join(options.evidence_dir, file_name))
            answer = first_answer(text, names) if text is not None else None
            if answer is None:
                counts["missing" if text is None else "without"] += 1
                continue
            counts["written"] += 1
            paragraph = {"context": text, "qas": []}
            title = page.get("Title", file_name)
            article = articles.setdefault(
                file_name, {"title": title, "paragraphs": [paragraph]}
            )
            qas_id = squad_json.value(question, "QuestionId", str, place)
            record = {
                # A question has several documents. TriviaQA's own scripts use these
                # ids.
                "id": f"{qas_id}--{file_name}",
                "question": squad_json.value(question, "Question", str, place),
                "answers": [{"text": answer.group(), "answer_start": answer.start()}],
            }
            article["paragraphs"][0]["qas"].append(record)
        progress_module.report("convert", number, len(questions), unit="questions")
    _check(counts, options)
    with files.complete_or_absent(options.output_file) as file:
        squad = {"version": "1.1", "data": list(articles.values())}
        json.dump(squad, file, ensure_ascii=False)
    return (
        f"Read {len(questions):,} questions. Wrote {counts['written']:,} pairs of a "
        f"question and a document to {options.output_file}. Left out "
        f"{counts['without']:,} pairs without an answer in the first "
        f"{_NUM_WORDS} words."
    )


def first_answer(text: str, names: Iterable[str]) -> re.Match[str] | None:
    """Returns the earliest occurrence of an answer; the longest of equally early ones.

    Case and the kind of white space do not matter. An answer consists of whole words:
    "Ann" does not occur in "Anna".

    Example:
        >>> first_answer("He met ANN  LEE.", ["lee", "Ann Lee"]).group()
        'ANN  LEE'
    """
    known = {" ".join(name.split()) for name in names} - {""}
    if not known:
        return None
    # The first alternative that fits is taken.
    ordered = sorted(known, key=lambda name: (-len(name), name))
    alternatives = "|".join(
        r"\s+".join(map(re.escape, name.split())) for name in ordered
    )
    return re.search(rf"(?<!\w)(?:{alternatives})(?!\w)", text, re.IGNORECASE)


def _names(question, place):
    if "Answer" not in question:
        raise ValueError(
            f"{place} has no Answer; expected a training or development file."
        )
    answer = question["Answer"]
    names = [squad_json.value(answer, "Value", str, place)]
    for key in _ALIASES:
        if key in answer:
            names += squad_json.value(answer, key, list, place)
    return names


def _first_words(path):
    """Returns the beginning of a document; None if there is no such file."""
    if not files.exists(path):
        logger.debug("No such document: %s.", path)
        return None
    with files.open_file(path) as file:
        text = file.read().lstrip()
    ends = [word.end() for word in itertools.islice(_WORD.finditer(text), _NUM_WORDS)]
    return text[: ends[-1]] if ends else ""


def _check(counts, options):
    if counts["missing"] == counts.total():
        raise FileNotFoundError(
            f"{options.evidence_dir} has none of the documents; expected the folder "
            "evidence/wikipedia of TriviaQA."
        )
    if counts["missing"]:
        logger.warning(
            "%s lacks %d documents.", options.evidence_dir, counts["missing"]
        )
    if not counts["written"]:
        raise ValueError(
            f"{options.qa_file}: no document contains an answer in its first "
            f"{_NUM_WORDS} words; there is nothing to write."
        )
