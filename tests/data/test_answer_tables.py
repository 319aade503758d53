import csv

import pytest

from bert_tf.data import tables

ANSWERS = [{"answer": "yes", "score": "0.9"}, {"answer": "no; never", "score": "0.8"}]


@pytest.mark.parametrize(
    "name, text, columns, rows",
    [
        (
            "a.csv",
            'Nr,text,note \n7,"so, so",\n8,"two\nlines",é\n',
            ["Nr", "text", "note"],
            [["7", "so, so", ""], ["8", "two\nlines", "é"]],
        ),
        (
            "a.tsv",
            'text\tanswer\nsay "hi"\tmaybe\nx\ty\n',
            ["text", "answer"],
            [['say "hi"', "maybe"], ["x", "y"]],
        ),
        (
            "a.jsonl",
            '{"text": "x", "stars": 4.0}\n'
            '{"text": "y", "tags": ["é"], "stars": null}\n',
            ["text", "stars", "tags"],
            [["x", "4", ""], ["y", "", '["é"]']],
        ),
    ],
)
def test_answers_are_written_beside_the_columns(tmp_path, name, text, columns, rows):
    (tmp_path / name).write_text(text)
    path = tmp_path / "out.csv"
    tables.write_answers(
        str(path), str(tmp_path / name), ANSWERS, names=["answer", "score"]
    )
    # Excel takes the text for UTF-8 only because of the byte order mark.
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *found = csv.reader(file)
    new_name = "answer_2" if "answer" in columns else "answer"
    assert header == [*columns, new_name, "score"]
    assert found == [
        [*rows[0], "yes", "0.9"],
        [*rows[1], "no; never", "0.8"],
    ]


def test_a_table_that_changed_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("text\nx\n")
    source, path = str(tmp_path / "a.csv"), tmp_path / "out.csv"
    with pytest.raises(ValueError, match="has 1 rows, but 2 were predicted"):
        tables.write_answers(str(path), source, ANSWERS, names=["answer"])
    assert not path.exists()
