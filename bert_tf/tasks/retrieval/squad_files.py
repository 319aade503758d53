"""Files of SQuAD as data of retrieval: a question finds its paragraph."""

import json

from bert_tf import files
from bert_tf.data import squad_json


def read_paragraphs(path: str) -> list[tuple[str, str]]:
    """Returns (id, text) of every paragraph: "Super_Bowl_50/1" is its title's first.

    An article without a title, or with that of an earlier one, has its number there:
    "article 3/1", "Rivers (article 3)/1".

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no file of SQuAD, or a paragraph is blank or too long.
    """
    article_of: dict[str, int] = {}  # Name of an article -> its number.
    found = []
    for paragraph in _paragraphs(path):
        name = _name(paragraph, article_of)
        article_of[name] = paragraph.article
        found.append((f"{name}/{paragraph.number}", _context(paragraph)))
    return found


def read_questions(path: str) -> list[tuple[str, str, str]]:
    """Returns (id, question, its paragraph) of every question.

    Raises:
        OSError: the file cannot be read.
        ValueError: as of `read_paragraphs`, or a question is blank or lacks something.
    """
    found = []
    for paragraph in _paragraphs(path):
        context = _context(paragraph)
        questions = squad_json.value(paragraph.record, "qas", list, paragraph.place)
        for number, question in enumerate(questions, start=1):
            place = f"{paragraph.place}, question {number}"
            own_id = squad_json.value(question, "id", str, place)
            text = squad_json.question_text(question, f"{place} ({own_id})")
            found.append((own_id, text, context))
    return found


def _paragraphs(path):
    text = "\n".join(files.read_lines(path))
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}:{error.lineno}: not JSON ({error.msg}); name files of JSON lines "
            ".jsonl."
        ) from None
    return squad_json.paragraphs(content, path)


def _context(paragraph):
    text = squad_json.value(paragraph.record, "context", str, paragraph.place)
    squad_json.check_context(text, paragraph.place)
    return text


def _name(paragraph, article_of):
    """Returns what the ids of an article's paragraphs start with."""
    number = f"article {paragraph.article}"
    name = paragraph.title or number
    while article_of.get(name, paragraph.article) != paragraph.article:
        name += f" ({number})"
    return name
