import gzip
import io
import pathlib

import pyarrow
import pytest
from pyarrow import parquet

from bert_tf.data import tables

# Written by pandas; see make_tables.py there.
OF_PANDAS = pathlib.Path(__file__).resolve().parent / "tables_of_pandas"


def _packed(data):
    return gzip.compress(data, mtime=0)  # Names of tests must not change with time.


def _parquet(**columns):
    data = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), data)
    return data.getvalue()


def cells(path, columns=("text", "label"), **kwargs):
    return [dict(row.cells) for row in tables.read_table(path, columns, **kwargs)]


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.tsv", 'text\tlabel\nsay "hi", now\t1\n'),  # A quote is text in GLUE.
        ("a.tsv", 'text\tlabel\r\nsay "hi", now\t1\r\n'),  # Windows.
        ("a.tsv", '\ufefftext\tlabel\nsay "hi", now\t1\n\n\n'),  # BOM, blank end.
        ("a.txt", 'text\tlabel\nsay "hi", now\t1'),  # No line end at the end.
        ("a.csv", 'label,text\n1,"say ""hi"", now"\n'),  # Real quoting, other order.
        ("a.jsonl", '{"text": "say \\"hi\\", now", "label": "1"}\n'),
        ("a.json", '{"text": "say \\"hi\\", now", "label": 1}\n'),  # A number is text.
        ("a.json", '[\n  {"text": "say \\"hi\\", now",\n   "label": 1.0}\n]'),
        ("a.csv.gz", _packed(b'label,text\n1,"say ""hi"", now"\n')),
        ("a.csv", _packed(b'label,text\n1,"say ""hi"", now"\n')),
        ("a.parquet", _parquet(label=[1], text=['say "hi", now'])),
    ],
)
def test_every_kind_of_table_gives_the_same_cells(write, name, content):
    assert cells(write(name, content)) == [{"text": 'say "hi", now', "label": "1"}]


def test_names_of_columns_have_no_surrounding_white_space(write):
    path = write("a.csv", " text,label \u00a0\nx,1\n")
    assert cells(path) == [{"text": "x", "label": "1"}]
    path = write("a.jsonl", '{"text ": "x", " label": 1}\n')
    assert cells(path) == [{"text": "x", "label": "1"}]
    path = write("a.tsv", "x\t1\n")
    assert cells(path, header=["text ", "label"]) == [{"text": "x", "label": "1"}]


def test_columns_without_a_name_have_numbers(write):
    path = write("a.csv", "text,label,,\nx,1,y,z\n")
    [row] = cells(path)
    assert row == {"text": "x", "label": "1", "column 3": "y", "column 4": "z"}


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.tsv", "text\tlabel\tlabel \nx\t1\t0\n"),
        ("a.csv", "text,label,label\nx,1,0\n"),
        ("a.jsonl", '{"text": "x", "label": 1, "label": 0}\n'),
        ("a.jsonl", '{"text": "x", "label": 1, "label ": 0}\n'),
    ],
)
def test_a_repeated_column_is_refused(write, name, content):
    with pytest.raises(ValueError, match=r"a\.\w+:1: the column 'label' occurs twice"):
        cells(write(name, content))


@pytest.mark.parametrize("name", ["plain.csv", "with_mark.csv", "with_index.csv"])
def test_tables_of_pandas_are_read(name):
    rows = cells(str(OF_PANDAS / name))
    assert [(row["text"], row["label"]) for row in rows] == [
        ("très bien, merci", "1"),
        ("so, so", "0"),
        ("no; never", "0"),
    ]


@pytest.mark.parametrize(
    "name, labels",
    [
        ("ints.jsonl", ["1", "0", "0"]),
        ("floats.jsonl", ["1", "0", "0"]),
        ("strings.jsonl", ["1", "0", "0"]),
        ("booleans.jsonl", ["true", "false", "false"]),
    ],
)
def test_equal_values_of_json_have_the_same_text(name, labels):
    assert [row["label"] for row in cells(str(OF_PANDAS / name))] == labels


@pytest.mark.parametrize(
    "name, message",
    [
        (
            "semicolons.csv",
            "no column 'text', 'label'; the columns are '.*by ';'; save",
        ),
        ("commas.tsv", "no column 'text', 'label'; the columns are '.*by ','; save"),
        ("utf_16.csv", r"utf_16\.csv:1: the text is UTF-16; expected UTF-8"),
        ("utf_16_le.csv", "the text is UTF-16; expected UTF-8"),
        ("utf_16_be.csv", "the text is UTF-16; expected UTF-8"),
        ("utf_32.csv", "the text is UTF-32; expected UTF-8"),
        ("missing", "No such file: .*missing"),
        ("windows.csv", r"windows\.csv:2: not UTF-8 .*convert the text to UTF-8"),
        ("null_label.jsonl", r":2: column 'label' is null; expected text or a number"),
    ],
)
def test_a_table_in_another_form_is_recognized(name, message):
    with pytest.raises((OSError, ValueError), match=message):
        cells(str(OF_PANDAS / name))


def test_a_column_of_lists_is_read_from_json_lines(write):
    path = write("a.jsonl", '{"text": "x", "endings": ["a", 2]}\n')
    [row] = tables.read_table(path, ["text"], list_columns=["endings"])
    assert row.lists == {"endings": ("a", "2")}


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.jsonl", '{"text": "x", "endings": "y"}\n', ":1: column 'endings' is \"y\""),
        ("a.jsonl", '{"text": "x", "endings": [[]]}\n', "expected a list of texts"),
    ],
)
def test_a_column_that_holds_no_lists_is_refused(write, name, content, message):
    with pytest.raises(ValueError, match=message):
        list(
            tables.read_table(write(name, content), ["text"], list_columns=["endings"])
        )


@pytest.mark.parametrize(
    "name, line", [("a.tsv", "text\tlabel"), ("a.csv", "text,label")]
)
def test_a_header_line_under_a_given_header_is_refused(write, name, line):
    header = ("text", "label")
    path = write(name, f"{line}\n")
    with pytest.raises(ValueError, match=":1: the line names the columns"):
        cells(path, header=header)
    assert len(cells(path, columns=(), header=header)) == 1  # As it is.


def test_a_blank_line_is_a_row_of_a_table_with_one_column(write):
    path = write("a.tsv", "text\nx\n\ny\n")
    assert [row["text"] for row in cells(path, columns=("text",))] == ["x", "", "y"]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.tsv", "text\tlabel\nx\t1\ny\n", r"a\.tsv:3: expected 2 columns .*, got 1"),
        ("a.tsv", "text\tlabel\nx\t1\t2\n", r"a\.tsv:2: expected 2 columns .*, got 3"),
        ("a.tsv", "text\tlabel\n\nx\t1\n", r"a\.tsv:2: expected 2 columns .*, got 1"),
        ("a.csv", "text,label\nx,1,2\n", r"a\.csv:2: expected 2 columns .*, got 3"),
        ("a.csv", 'text,label\n"x"y,1\n', r"a\.csv:2: wrong CSV quoting"),
        ("a.csv", 'text,label\n"x,1\n', r"a\.csv:\d: wrong CSV quoting"),
        ("a.tsv", "words\tlabel\nx\t1\n", "'text'; the columns are 'words', 'lab"),
        ("a.jsonl", '{"text": "x"}\n', r"a\.jsonl:1: .* column 'label'; .* are 'text'"),
        ("a.jsonl", '{"text": "x"\n', r"a\.jsonl:1: not JSON"),
        ("a.jsonl", "[1]\n", r"a\.jsonl, row 1: expected a JSON object"),
        ("a.jsonl", '["x"]\n', r"row 1: expected a JSON object .*, got 'x'"),
        ("a.jsonl", '{"text": "\\ud83d", "label": 1}\n', r"jsonl:1: .* half of a surr"),
        ("a.csv.gz", _packed(bytes(99))[:-9], r"a\.csv.gz: damaged or truncated"),
        ("a.parquet", b"PAR1", r"a\.parquet cannot be read as Parquet"),
        ("b.parquet", _parquet(text=[b"x"], label=[1]), "row 1: column 'text' is"),
        ("a.jsonl", '{"text": "x", "label": null}\n', r":1: column 'label' is null"),
        ("a.jsonl", '{"text": "x", "label": NaN}\n', r":1: column 'label' is NaN"),
        ("a.jsonl", '{"text": ["x"], "label": 1}\n', r":1: column 'text' is \["),
        ("a.tsv", "", r"a\.tsv has no rows"),
        ("a.tsv", "text\tlabel\n", r"a\.tsv has no rows"),
        ("a.csv", "", r"a\.csv has no rows"),
        ("a.jsonl", "\n\n", r"a\.jsonl has no rows"),
        ("a.xlsx", "text", r"expected one of \.tsv, \.txt, \.csv"),
        ("a.tsv", b"text\tlabel\nx\xff\t1\n", r"a\.tsv:2: not UTF-8"),
    ],
)
def test_a_bad_table_is_refused_with_file_and_line(write, name, content, message):
    with pytest.raises(ValueError, match=message):
        cells(write(name, content))
