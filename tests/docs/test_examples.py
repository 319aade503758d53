"""Every example in docs/examples runs, with a tiny model in place of BERT-Base."""

import pathlib
import runpy

import pytest

pytestmark = pytest.mark.slow

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
# What the last call of an example returns has these keys, or is an array.
RESULTS = {
    "answer_questions": "answer",
    "choose": "ending",
    "classify": "label",
    "retrieve": "passages",
    "tag": "tags",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example, tiny, tmp_path, monkeypatch, capsys):
    source = example.read_text()
    assert source.count('"bert-base-uncased"') == 1
    monkeypatch.chdir(tmp_path)
    pathlib.Path("example.py").write_text(
        source.replace('"bert-base-uncased"', repr(str(tiny)))
    )
    names = runpy.run_path("example.py")
    if example.stem in RESULTS:
        item = names["train"][0]
        inputs = {
            "answer_questions": item[:2],
            "choose": item[:2],
        }.get(example.stem, item[0])
        [answer] = names["model"].predict([inputs])
        assert RESULTS[example.stem] in answer
    elif example.stem == "embed":
        assert names["vectors"].shape == (3, 16)
    else:
        shown = capsys.readouterr().out
        assert all(text in shown for text in names["texts"])


def test_each_use_has_an_example():
    import bert_tf

    uses = {*bert_tf.fine_tune.__all__, "embed", "fill_masks", "score_texts"}
    assert {path.stem for path in EXAMPLES} == uses
