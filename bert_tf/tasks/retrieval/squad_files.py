"""Reads SQuAD files as retrieval data: each question's passage is its paragraph."""

import logging
from collections.abc import Iterator
from collections.abc import Mapping

from bert_tf import files
from bert_tf.data import squad_json

logger = logging.getLogger(__name__)


def read_paragraphs(path: str) -> list[tuple[str, str]]:
    """Returns (id, text) of every paragraph.

    The id is title and number of the paragraph: "Super_Bowl_50/1". If an article has
    no title, or that of an earlier article, the id contains the article's number:
    "article 3/1", "Rivers (article 3)/1".

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a SQuAD file, or a paragraph is blank or too long.
    """
    article_of: dict[str, int] = {}  # Name of an article -> its number.
    found = []
    for paragraph in _paragraphs(path):
        name = _name(paragraph, article_of)
        article_of[name] = paragraph.article
        found.append((f"{name}/{paragraph.number}", _context(paragraph)))
    return found


def read_questions(
    path: str, *, with_passages: bool = True
) -> list[tuple[str, str, str]]:
    """Returns (id, question, paragraph) of every question.

    Args:
        path: the file.
        with_passages: whether the paragraphs count as right ones. If so, a warning
            says how many questions of SQuAD 2.0 have no answer in theirs.

    Raises:
        OSError: the file cannot be read.
        ValueError: as for `read_paragraphs`, or a question is blank or incomplete.
    """
    found, num_impossible = [], 0
    for paragraph in _paragraphs(path):
        context = _context(paragraph)
        questions = squad_json.value(paragraph.record, "qas", list, paragraph.place)
        for number, question in enumerate(questions, start=1):
            place = f"{paragraph.place}, question {number}"
            own_id = squad_json.value(question, "id", str, place)
            text = squad_json.question_text(question, f"{place} ({own_id})")
            found.append((own_id, text, context))
            num_impossible += question.get("is_impossible") is True
    if num_impossible and with_passages:
        logger.warning(
            "%s: %d of %d questions have no answer in their paragraph (is_impossible), "
            "but count as queries for it.",
            path,
            num_impossible,
            len(found),
        )
    return found


def _paragraphs(path: str) -> Iterator[squad_json.Paragraph]:
    content = files.parse_json(
        "\n".join(files.read_lines(path)),
        path,
        advice="a file of JSON lines needs the extension .jsonl",
    )
    return squad_json.paragraphs(content, path)


def _context(paragraph: squad_json.Paragraph) -> str:
    text = squad_json.value(paragraph.record, "context", str, paragraph.place)
    squad_json.check_context(text, paragraph.place)
    return text


def _name(paragraph: squad_json.Paragraph, article_of: Mapping[str, int]) -> str:
    """Returns the article's part of a paragraph's id."""
    number = f"article {paragraph.article}"
    name = paragraph.title or number
    while article_of.get(name, paragraph.article) != paragraph.article:
        name += f" ({number})"
    return name
