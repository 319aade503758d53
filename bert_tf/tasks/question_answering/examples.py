"""Questions with contexts and answers, from SQuAD's JSON or from Python."""

import bisect
import dataclasses
import json
import logging
import os
import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.data import squad_json
from bert_tf.data import text_checks
from bert_tf.fine_tuning import given_data

logger = logging.getLogger(__name__)

# run_squad.py of 2018 splits a context into words at these characters only. They are
# fewer than the tokenizer's white space: a no-break space is part of a word here.
WORD_SEPARATORS = tuple(map(ord, " \t\r\n\u202f"))
_WORD = re.compile("[^ \t\r\n\u202f]+")


class Context:
    """A text that contains the answers to questions.

    Attributes:
        text: the text.
        words: its words, separated by white space.
        starts: index of each word's first character in the text.
    """

    def __init__(self, text: str):
        self.text = text
        matches = list(_WORD.finditer(text))
        self.words = [match[0] for match in matches]
        self.starts = [match.start() for match in matches]

    def word_at(self, place: int) -> int:
        """Returns the index of the word at, or the last word before, a character."""
        return max(0, bisect.bisect_right(self.starts, place) - 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """A correct answer and its position in the context."""

    text: str
    start: int  # Index of its first character; -1 if the file has none.


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadExample:
    """One question about one context."""

    qas_id: str
    question_text: str
    context: Context  # Questions about one paragraph share it.
    answers: tuple[Answer, ...] = ()  # Empty if there is none or none is known.
    is_impossible: bool = False  # The context is known not to contain an answer.


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadFile:
    """The content of a file in SQuAD's format."""

    path: str
    examples: list[SquadExample]
    is_version_2: bool  # Its questions have `is_impossible`.
    has_answers: bool  # Every question has answers or is marked impossible.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fault:
    """Why training cannot use a question."""

    reason: str  # "its answer ...", without a full stop.
    is_error: bool = True  # False: the question is left out.


def read_squad(path: str) -> SquadFile:
    """Returns the questions of a file in the format of SQuAD 1.1 or 2.0.

    Args:
        path: JSON: {"data": [{"paragraphs": [{"context", "qas": [{"id", "question",
            "answers": [{"text", "answer_start"}], "is_impossible"}]}]}]}. Prediction
            needs neither `answers` nor `is_impossible`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not in this format, an id occurs twice, a question or
            a context is blank, or a context is longer than
            `squad_json.MAX_CONTEXT_CHARACTERS`. The message names the paragraph.
    """
    with files.open_file(path, "rb") as file:
        content = files.parse_json(
            file.read(), path, advice="expected a file in SQuAD's format"
        )
    return parsed(content, path)


def parsed(content: Any, path: str) -> SquadFile:
    """Returns the questions in the content of a SQuAD file; see `read_squad`."""
    examples = []
    places: dict[str, str] = {}  # Of each id, without the path.
    is_version_2 = False
    for paragraph in squad_json.paragraphs(content, path):
        context = Context(paragraph.context)
        for question in paragraph.questions():
            if question.id in places:
                raise ValueError(
                    f"{question.place} has the same id as {places[question.id]}; ids "
                    "must be unique."
                )
            places[question.id] = question.place.removeprefix(f"{path}: ")
            examples.append(_example(question, context))
            is_version_2 |= "is_impossible" in question.record
    if not examples:
        raise ValueError(f"{path} contains no questions.")
    return SquadFile(
        path=path,
        examples=examples,
        is_version_2=is_version_2,
        has_answers=all(
            example.answers or example.is_impossible for example in examples
        ),
    )


def training_examples(
    squad_file: SquadFile, *, version_2_with_negative: bool
) -> list[SquadExample]:
    """Returns the questions to train on, each with its first answer.

    As in 2018, a question is left out with a warning if its answer cannot be found
    among the context's words, for example because it contains a no-break space.

    Args:
        squad_file: what `read_squad` returned.
        version_2_with_negative: whether questions without an answer are allowed.

    Raises:
        ValueError: a question has no answer, or its answer is not at `answer_start`.

    Source: read_squad_examples of run_squad.py, 2018. The release refuses a question
    with several answers; this function uses the first one, so that a development set
    can be used for training.
    """
    examples = []
    for example in squad_file.examples:
        place = f"{squad_file.path}: question {example.qas_id}"
        fault = fault_of(example, version_2_with_negative=version_2_with_negative)
        if fault and fault.is_error:
            raise ValueError(f"{place}: {fault.reason}.")
        if fault:
            logger.warning("%s is left out: %s.", place, fault.reason)
        else:
            is_impossible = example.is_impossible and version_2_with_negative
            answers = () if is_impossible else example.answers
            examples.append(
                dataclasses.replace(
                    example, answers=answers, is_impossible=is_impossible
                )
            )
    if not examples:
        raise ValueError(f"{squad_file.path} contains no question to train on.")
    return examples


def fault_of(example: SquadExample, *, version_2_with_negative: bool) -> Fault | None:
    """Returns why training cannot use a question, judged by its first answer.

    As in 2018, the answer's position and length select whole words, and the answer has
    to occur in them. So a position anywhere inside a word is accepted.

    Args:
        example: a question from `read_squad`.
        version_2_with_negative: whether questions without an answer are allowed.
    """
    if example.is_impossible and version_2_with_negative:
        return None
    if not example.answers:
        hint = "training needs one"
        if example.is_impossible:
            hint = "use --version_2_with_negative to train on such questions"
        return Fault(reason=f"it has no answer; {hint}")
    answer, text = example.answers[0], example.context.text
    if answer.start < 0:
        return Fault(
            reason=f"its answer {answer.text!r:.80} has no answer_start of 0 or more; "
            "training needs the index of its first character in the context"
        )
    first, last = answer_words(example)
    words = " ".join(example.context.words[first : last + 1])
    if answer.text.strip() and " ".join(answer.text.split()) in words:
        return None
    if answer.text.strip() and text.startswith(answer.text, answer.start):
        return Fault(
            reason=f"its answer {answer.text!r} does not occur in the context's words "
            f"{words!r}",
            is_error=False,
        )
    text_at_start = text[answer.start : answer.start + len(answer.text)]
    return Fault(
        reason=f"its answer {answer.text!r:.80} is not in its context at character "
        f"{answer.start}, which has {text_at_start!r:.80}; correct text or answer_start"
    )


def check_answers(
    findings: text_checks.Findings,
    examples: Sequence[SquadExample],
    path: str,
    version_2_with_negative: bool | None,
) -> None:
    """Checks that the answers of a set occur in their contexts.

    Args:
        findings: the list to extend.
        examples: of the set.
        path: of its file.
        version_2_with_negative: as for `fault_of`. None: the set is only for
            evaluation.
    """
    trains = version_2_with_negative is not None
    name = "train" if trains else "dev"
    faults = [
        (one.qas_id, fault)
        for one in examples
        for fault in _faults(one, version_2_with_negative)
    ]
    for qas_id, fault in faults:
        is_error = trains and fault.is_error
        report = findings.error if is_error else findings.warning
        report("answers", f"question {qas_id}: {fault.reason}", path)
    if not faults:
        findings.passed("answers", f"{name}: all occur in their contexts")
    elif trains and len(faults) == len(examples):
        findings.error("answers", "no question can be used for training", path)
    share = sum(one.is_impossible for one in examples) / len(examples)
    findings.passed("answers", f"{name}: {share:.1%} of questions have none")


def _faults(example, version_2_with_negative):
    """Returns what is wrong with the answers of a question."""
    if version_2_with_negative is not None:
        fault = fault_of(example, version_2_with_negative=version_2_with_negative)
        return [fault] if fault else []
    faults = [
        fault_of(
            dataclasses.replace(example, answers=(answer,)),
            version_2_with_negative=False,
        )
        for answer in example.answers
        if answer.start >= 0 and not example.is_impossible
    ]
    return [fault for fault in faults if fault and fault.is_error]


def answer_words(example: SquadExample) -> tuple[int, int]:
    """Returns the indices of the first and the last word of the first answer."""
    answer = example.answers[0]
    return (
        example.context.word_at(answer.start),
        example.context.word_at(answer.start + len(answer.text) - 1),
    )


def given_questions(inputs: Iterable[Any]) -> list[SquadExample]:
    """Returns the (question, context) pairs that a Python caller passes to `predict`.

    Raises:
        ValueError: an input is not such a pair, or its context is blank or too long.
    """
    contexts: dict[str, Context] = {}
    examples = []
    items = given_data.read(inputs, "a list of (question, context) pairs")
    for index, item in enumerate(items):
        is_pair = isinstance(item, tuple | list) and len(item) == 2
        if not is_pair or not all(isinstance(text, str) for text in item):
            raise ValueError(
                f"Input {index} is {item!r:.60}; expected a (question, context) pair."
            )
        question, text = item
        if text not in contexts:
            squad_json.check_context(text, f"Input {index}")
            contexts[text] = Context(text)
        examples.append(
            SquadExample(
                qas_id=str(index), question_text=question, context=contexts[text]
            )
        )
    return examples


def given_rows(data: Any) -> list[dict[str, Any]]:
    """Returns questions as records, from memory, a table or a SQuAD file."""
    if not given_data.is_table_or_in_memory(data):
        squad_file = read_squad(os.fspath(data))
    elif isinstance(data, Mapping) and "data" in data:
        squad_file = parsed(data, "the data")
    else:
        return given_data.rows_of(data, squad_json.FORMS)
    return [
        {
            "id": example.qas_id,
            "question": example.question_text,
            "context": example.context.text,
            "answers": [
                {"text": one.text, "answer_start": one.start}
                for one in (() if example.is_impossible else example.answers)
            ],
        }
        for example in squad_file.examples
    ]


def given_file(run: Any, data: Any, name: str) -> str:
    """Returns the path of a set as a SQuAD file, written into the run's folder."""
    if not given_data.is_table_or_in_memory(data):
        return os.fspath(data)
    content = squad_json.from_rows(given_rows(data))
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    return run.add_file(f"{name}.json", text.encode("utf-8"), trains=name == "train")


def _example(question, context):
    record, place = question.record, question.place
    answers, is_impossible = [], False
    if "answers" in record:
        answers = squad_json.value(record, "answers", list, place)
    if "is_impossible" in record:
        is_impossible = squad_json.value(record, "is_impossible", bool, place)
    return SquadExample(
        qas_id=question.id,
        question_text=question.text,
        context=context,
        answers=tuple(_answer(answer, f"{place}, an answer") for answer in answers),
        is_impossible=is_impossible,
    )


def _answer(record, place):
    text, start = squad_json.value(record, "text", str, place), -1
    if "answer_start" in record:
        start = squad_json.value(record, "answer_start", int, place)
    return Answer(text=text, start=start)
