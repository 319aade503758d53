import pytest

from bert_tf.data import tables


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write_file


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
    ],
)
def test_every_kind_of_table_gives_the_same_cells(write, name, content):
    assert cells(write(name, content)) == [{"text": 'say "hi", now', "label": "1"}]


def test_a_tsv_cell_may_begin_with_a_quotation_mark_that_never_ends(write):
    path = write("a.tsv", 'text\tlabel\n"Oh\t0\nno"\t1\n')
    assert [row["text"] for row in cells(path)] == ['"Oh', 'no"']


def test_a_csv_cell_may_hold_a_line_end(write):
    path = write("a.csv", 'text,label\n"two\nlines",0\nnext,1\n')
    assert [row["text"] for row in cells(path)] == ["two\nlines", "next"]


def test_columns_that_are_not_asked_for_are_read_too(write):
    path = write("a.jsonl", '{"id": 7, "text": "x", "label": true, "other": null}\n')
    assert cells(path) == [{"id": "7", "text": "x", "label": "true", "other": None}]


def test_a_column_of_lists_is_read_from_json_lines(write):
    path = write("a.jsonl", '{"text": "x", "endings": ["a", 2]}\n')
    [row] = tables.read_table(path, ["text"], list_columns=["endings"])
    assert row.lists == {"endings": ("a", "2")}


@pytest.mark.parametrize(
    "name, content, message",
    [
        (
            "a.tsv",
            "text\tendings\nx\ty\n",
            "a .tsv file cannot contain lists in the column endings",
        ),
        ("a.jsonl", '{"text": "x"}\n', "a.jsonl:1: there is no column endings"),
        ("a.jsonl", '{"text": "x", "endings": "y"}\n', ':1: column endings is "y"'),
        ("a.jsonl", '{"text": "x", "endings": [[]]}\n', "expected a list of texts"),
    ],
)
def test_a_column_that_holds_no_lists_is_refused(write, name, content, message):
    with pytest.raises(ValueError, match=message):
        list(
            tables.read_table(write(name, content), ["text"], list_columns=["endings"])
        )


def test_a_given_header_makes_the_first_line_a_row(write):
    path = write("a.tsv", "x\t0\ny\t1\n")
    assert cells(path, header=("text", "label")) == [
        {"text": "x", "label": "0"},
        {"text": "y", "label": "1"},
    ]


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
        ("a.tsv", "words\tlabel\nx\t1\n", "no column text; the columns are words, lab"),
        ("a.jsonl", '{"text": "x"}\n', r"a\.jsonl:1: .* column label; .* are text"),
        ("a.jsonl", '{"text": "x"\n', r"a\.jsonl:1: not JSON"),
        ("a.jsonl", "[1]\n", r"a\.jsonl:1: expected a JSON object"),
        ("a.jsonl", '{"text": "x", "label": null}\n', r":1: column label is null"),
        ("a.jsonl", '{"text": ["x"], "label": 1}\n', r":1: column text is \["),
        ("a.tsv", "", r"a\.tsv has no rows"),
        ("a.tsv", "text\tlabel\n", r"a\.tsv has no rows"),
        ("a.csv", "", r"a\.csv has no rows"),
        ("a.jsonl", "\n\n", r"a\.jsonl has no rows"),
        (
            "a.xlsx",
            "text",
            r"expected one of \.tsv, \.txt, \.csv",
        ),
        ("a.tsv", b"text\tlabel\nx\xff\t1\n", r"a\.tsv:2: not UTF-8"),
    ],
)
def test_a_bad_table_is_refused_with_file_and_line(write, name, content, message):
    with pytest.raises(ValueError, match=message):
        cells(write(name, content))


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.tsv"):
        cells(str(tmp_path / "nothing.tsv"))
