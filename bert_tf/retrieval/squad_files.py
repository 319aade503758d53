"""Files of SQuAD as data of retrieval: a question finds its paragraph."""

import json

from bert_tf import files


def read_paragraphs(path: str) -> list[tuple[str, str]]:
    """Returns (id, text) of every paragraph: "Super_Bowl_50/1" is its title's first.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no file of SQuAD.
    """
    return [(own_id, paragraph["context"]) for own_id, paragraph in _paragraphs(path)]


def read_questions(path: str) -> list[tuple[str, str, str]]:
    """Returns (id, question, its paragraph) of every question; errors as above."""
    found = []
    for own_id, paragraph in _paragraphs(path):
        try:
            found += [
                (question["id"], question["question"], paragraph["context"])
                for question in paragraph["qas"]
            ]
        except (KeyError, TypeError):
            raise ValueError(
                f"{path}: {own_id} has questions without id or question; expected a "
                "file of SQuAD."
            ) from None
    return found


def _paragraphs(path):
    text = "\n".join(files.read_lines(path))
    try:
        articles = json.loads(text)["data"]
        found = [
            (f"{article['title']}/{number}", paragraph)
            for article in articles
            for number, paragraph in enumerate(article["paragraphs"], start=1)
        ]
        texts = [paragraph["context"] for _, paragraph in found]
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}:{error.lineno}: not JSON ({error.msg}); name files of JSON lines "
            ".jsonl."
        ) from None
    except (KeyError, TypeError):
        raise ValueError(
            f"{path} is not of SQuAD; expected an object with `data`. Name files of "
            "JSON lines .jsonl."
        ) from None
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError(f"{path}: a paragraph is empty; expected text.")
    return found
