"""Queries and passages are read from every format; invalid files are refused."""

import pytest

from bert_tf.tasks.retrieval import examples as examples_module


def test_rows_of_json_lines_are_examples(write):
    path = write(
        "a.jsonl",
        [
            {"query": "who", "passage": "me", "id": "x", "negatives": ["you", "him"]},
            {"query": "where", "passage": "there", "negatives": []},
        ],
    )
    first, second = examples_module.read_examples(path, "train")
    assert (first.guid, first.query, first.passage) == ("x", "who", "me")
    assert first.negatives == ("you", "him")
    assert (second.guid, second.negatives) == ("train-2", ())


def test_tables_and_text_files_are_read(write):
    path = write("a.tsv", "passage\tquery\nme\twho\n")
    [example] = examples_module.read_examples(path, "dev")
    assert (example.guid, example.query, example.passage) == ("dev-1", "who", "me")
    path = write("queries.txt", "who\n\nwhere is it\n")
    queries = examples_module.read_examples(path, "test", with_passages=False)
    assert [(example.guid, example.query) for example in queries] == [
        ("test-1", "who"),
        ("test-3", "where is it"),
    ]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.jsonl", '{"query": "who"}\n', r"a\.jsonl:1: there is no column 'passage'"),
        ("a.jsonl", '{"query": "a", "passage": "b"}\n{"que', r"a\.jsonl:2: not JSON"),
        (
            "a.jsonl",
            '{"id": "x", "query": "a", "passage": "b"}\n' * 2,
            r"a\.jsonl:2: the id 'x' is already used by .*a\.jsonl:1; give every row",
        ),
        (
            "a.jsonl",
            '{"query": "a", "passage": "b", "negatives": ["c", " b "]}\n',
            r"a\.jsonl:1: the passage is also in negatives",
        ),
        (
            "a.jsonl",
            '{"query": "a", "passage": "b", "negatives": "c"}\n',
            r"a\.jsonl:1: column 'negatives' is \"c\"; expected a list",
        ),
        ("a.json", "{}", r"a\.json: \.json files are not read; .* with query and pas"),
    ],
)
def test_an_error_in_queries_names_its_place(write, name, content, message):
    with pytest.raises(ValueError, match=message):
        examples_module.read_examples(write(name, content), "train")


def test_a_corpus_is_text_or_json_lines(write):
    corpus = examples_module.read_corpus(write("a.txt", "one\n\n two\n"))
    assert (corpus.ids, corpus.passages) == (("1", "3"), ("one", " two"))
    rows = [{"id": "x", "passage": "one"}, {"passage": "two"}]
    corpus = examples_module.read_corpus(write("a.jsonl", rows))
    assert (corpus.ids, corpus.passages) == (("x", "2"), ("one", "two"))


def test_equal_texts_share_a_number(write):
    corpus = examples_module.read_corpus(write("a.txt", "one\ntwo\n one \n"))
    assert corpus.numbers == [0, 1, 0]
    rows = [{"query": " a  b", "passage": "one"}, {"query": "a b", "passage": "two "}]
    queries = examples_module.read_examples(write("queries.jsonl", rows), "dev")
    assert corpus.relevant(queries) == {" a  b": {0, 1}}


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.txt", "\n\n", r"a\.txt has no passages"),
        ("a.json", "{}", r"a\.json: \.json files are not read; .* with passage in"),
        ("a.jsonl", '{"passage": ""}\n', r"a\.jsonl:1: the passage is empty"),
        ("a.jsonl", '{"text": "a"}\n', r"a\.jsonl:1: there is no column 'passage'"),
        (
            "a.jsonl",
            '{"id": 7, "passage": "a"}\n{"id": "7", "passage": "b"}\n',
            r"a\.jsonl:2: the id '7' is already used by .*a\.jsonl:1; give every",
        ),
    ],
)
def test_an_error_in_a_corpus_names_its_place(write, name, content, message):
    with pytest.raises(ValueError, match=message):
        examples_module.read_corpus(write(name, content))


def test_swapped_queries_and_unknown_passages_are_noticed(write, caplog):
    corpus = examples_module.read_corpus(write("a.txt", "honey\nwax\nlight\n"))

    def check(*pairs):
        rows = [{"query": query, "passage": passage} for query, passage in pairs]
        path = write("t.jsonl", rows)
        train = examples_module.read_examples(path, "train")
        examples_module.check_passages(path, train, corpus)

    check(("who", "honey"), ("what", "oil"))
    assert "1 of 2 passages are not in" in caplog.text
    with pytest.raises(ValueError, match=r"2 of 2 queries are passages .* swap"):
        check(("honey", "who"), ("wax", "what"))
