"""fill_mask: the words behind [MASK], and where it finds what it needs."""

import json
import re

import numpy as np
import pytest

from bert_tf.checkpoints import loading
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.pretraining import fill_mask
from bert_tf.pretraining import likelihood
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import predictions
from bert_tf.tokenization import full

TEXT = "the [MASK] of [MASK]"


@pytest.fixture
def fill_options(golden):
    """Returns options for the recorded model; keywords replace or add."""

    def create(**values):
        defaults = {
            "init_checkpoint": str(golden / "model" / "bert_model.ckpt"),
            "bert_config_file": str(golden / "model" / "bert_config.json"),
            "vocab_file": str(golden / "vocab.txt"),
            "text": TEXT,
        }
        return pretraining_options.FillMaskOptions(**defaults | values)

    return create


@pytest.fixture
def released(copy_release, tmp_path):
    """Folder with checkpoint, configuration and vocabulary beside each other."""
    return copy_release(tmp_path / "released")


def test_the_probabilities_are_those_of_the_model(fill_options, golden):
    folder = golden / "model"
    model = pretrainer.BertPretrainer(
        config_module.BertConfig.from_json_file(folder / "bert_config.json")
    )
    model.build()
    loading.load_checkpoint(model, str(folder / "bert_model.ckpt"))
    vocabulary = full.FullTokenizer(golden / "vocab.txt").vocabulary
    words = ["[CLS]", "the", "[MASK]", "of", "[MASK]", "[SEP]"]
    outputs = model(
        {
            "input_ids": np.array([[vocabulary[word] for word in words]], "int32"),
            "masked_lm_positions": np.array([[2, 4]], "int32"),
        }
    )
    logits = np.asarray(outputs["masked_lm_logits"][0], "float64")
    expected = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)

    size = len(vocabulary)
    fillings = predictions.load(fill_options()).fill(TEXT, top_k=size)
    assert len(fillings) == 2
    for row, found in zip(expected, fillings, strict=True):
        by_token = {one.token: one.probability for one in found}
        by_id = [by_token[token] for token in vocabulary.tokens]
        np.testing.assert_allclose(by_id, row, rtol=1e-5)
        assert list(by_token.values()) == sorted(by_token.values(), reverse=True)
        assert sum(by_token.values()) == pytest.approx(1.0)


def test_the_text_of_the_flag_or_of_standard_input_is_filled(
    run_tool, released, monkeypatch
):
    monkeypatch.setattr("sys.stdin", iter(["a [MASK]\n", "\n", "[MASK] b\n"]))
    for text, shown in (
        ("the [MASK]", ["the [MASK]"]),
        ("-", ["a [MASK]", "[MASK] b"]),
    ):
        flags = [f"--init_checkpoint={released / 'bert_model.ckpt'}", f"--text={text}"]
        done = run_tool("fill_mask", *flags)
        assert done.exit_code == 0, done.stderr
        assert done.stdout.splitlines()[::2] == shown


@pytest.mark.parametrize(
    "text, message",
    [
        ("no mask here", r"at least one \[MASK\] in the text, got 'no mask here'"),
        ("[mask]", r"at least one \[MASK\]"),  # Lower case is an ordinary word.
        ("[MASK] " * 70, "The text has 72 word pieces .* 64 positions"),
    ],
)
def test_a_text_that_cannot_be_filled_is_refused(fill_options, text, message):
    with pytest.raises(ValueError, match=message):
        predictions.load(fill_options()).fill(text)


def test_texts_of_a_batch_are_filled_as_each_alone(fill_options):
    texts = ["the [MASK]", TEXT, "a b c d e f [MASK] h", "[MASK] " * 5, "[MASK]"]
    filler = predictions.load(fill_options(batch_size=2))
    together = list(filler.fill_each(texts, top_k=3))
    for text, found in zip(texts, together, strict=True):
        assert len(found) == text.count("[MASK]")
        for mask, alone in zip(found, filler.fill(text, top_k=3), strict=True):
            assert [one.token for one in mask] == [one.token for one in alone]
            assert [one.probability for one in mask] == pytest.approx(
                [one.probability for one in alone], rel=1e-4
            )


class ByTable(predictions.MaskFiller):
    """A filler that looks probabilities up in a table: ids of the row -> fillings."""

    def __init__(self, tokenizer, table):
        self.tokenizer = tokenizer
        self.table = table
        self.model = type(
            "Model", (), {"config": config_module.BertConfig(vocab_size=9)}
        )

    def fillings(self, rows, top_k):
        [(ids, positions)] = rows
        key = " ".join(self.tokenizer.convert_ids_to_tokens(ids)[1:-1])
        assert len(self.table[key]) == len(positions)
        return [
            [
                [predictions.Filling(token=token, probability=probability)]
                for token, probability in self.table[key]
            ]
        ]


def test_the_surest_mask_is_filled_first_and_known_to_the_next(golden):
    tokenizer = full.FullTokenizer(golden / "vocab.txt", never_split=("[MASK]",))
    filler = ByTable(
        tokenizer,
        {
            "the [MASK] [MASK] of [MASK]": [("bee", 0.2), ("is", 0.3), ("air", 0.9)],
            "the [MASK] [MASK] of air": [("lamp", 0.6), ("is", 0.4)],
            "the lamp [MASK] of air": [("##house", 0.5)],
        },
    )
    filled = filler.fill_iteratively("The [MASK] [MASK] of [MASK].".replace(".", ""))
    assert filled.order == [2, 0, 1]
    assert [mask[0].token for mask in filled.fillings] == ["lamp", "##house", "air"]
    assert filled.text == "The lamphouse of air"


def test_iterative_fillings_are_those_of_the_model_at_their_turn(fill_options):
    filler = predictions.load(fill_options())
    filled = filler.fill_iteratively(TEXT, top_k=3)
    first, second = filled.order
    at_once = filler.fill(TEXT, top_k=3)
    surest = max((0, 1), key=lambda mask: at_once[mask][0].probability)
    assert (first, filled.fillings[first]) == (surest, at_once[surest])
    token = at_once[first][0].token
    partly = ["the", "[MASK]", "of", "[MASK]"]
    partly[1 + 2 * first] = token
    ids = filler.tokenizer.convert_tokens_to_ids(["[CLS]", *partly, "[SEP]"])
    [[expected]] = filler.fillings([(ids, [2 + 2 * second])], 3)
    assert filled.fillings[second] == expected


def test_the_likelihood_is_the_sum_over_pieces_masked_in_turn(fill_options):
    filler = predictions.load(fill_options(batch_size=4))
    texts = ["the lighthouse", "bee", "the bee and honey is warm"]
    found = list(likelihood.LikelihoodScorer(filler).score_each(texts))
    size = filler.model.config.vocab_size
    for text, scored in zip(texts, found, strict=True):
        pieces = filler.tokenizer.tokenize(text)
        assert list(scored.pieces) == pieces
        expected = []
        for index, piece in enumerate(pieces):
            row = [*pieces]
            row[index] = "[MASK]"
            ids = filler.tokenizer.convert_tokens_to_ids(["[CLS]", *row, "[SEP]"])
            [[fillings]] = filler.fillings([(ids, [index + 1])], size)
            by_token = {one.token: one.probability for one in fillings}
            expected.append(np.log(by_token[piece]))
        np.testing.assert_allclose(scored.log_probabilities, expected, atol=1e-4)
        assert scored.total == pytest.approx(sum(expected), abs=1e-3)


@pytest.mark.parametrize(
    "values, keys",
    [
        ({}, ["text", "masks"]),
        ({"iterative": True}, ["text", "filled", "masks", "order"]),
        (
            {"pseudo_log_likelihood": True},
            ["text", "pseudo_log_likelihood", "per_piece", "per_word", "pieces"],
        ),
    ],
    ids=["masks", "iterative", "likelihood"],
)
def test_texts_of_a_file_are_answered_in_a_file(fill_options, tmp_path, values, keys):
    texts = ["the [MASK]", "[MASK] of [MASK]"]
    if "pseudo_log_likelihood" in values:
        texts = [text.replace("[MASK]", "bee") for text in texts]
    (tmp_path / "texts.txt").write_text("\n\n".join(texts) + "\n")
    options = fill_options(
        text=None,
        input_file=str(tmp_path / "texts.txt"),
        output_file=str(tmp_path / "answers.jsonl"),
        **values,
    )
    assert "The results for 2 texts are in" in fill_mask.run(options)
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["text"] for record in records] == texts
    assert [list(record) for record in records] == [keys] * 2


def test_the_report_shows_what_was_filled_and_how_likely_a_text_is(fill_options):
    text, filled, *masks = fill_mask.run(fill_options(iterative=True)).splitlines()
    assert text == TEXT
    words = [mask.split()[0] for mask in masks]
    assert filled == f"  the {words[0]} of {words[1]}"
    scored = fill_mask.run(fill_options(text="the bee", pseudo_log_likelihood=True))
    assert re.fullmatch(
        r"the bee\n  -\d+\.\d{4}  per piece -\d+\.\d{4}  per word -\d+\.\d{4}", scored
    )


@pytest.mark.parametrize(
    "values, lines, message",
    [
        ({}, "[MASK]\n\nno mask\n", r"texts\.txt:3: Expected at least one \[MASK\]"),
        ({"iterative": True}, "[MASK]\nno mask\n", r"texts\.txt:2: Expected at least"),
        (
            {"pseudo_log_likelihood": True},
            "bee\n[MASK]\n",
            r"texts\.txt:2: Cannot score a text with \[MASK\]",
        ),
        (
            {"pseudo_log_likelihood": True},
            "bee\n" + "bee " * 70,
            r"texts\.txt:2: The text has 72 word pieces .* has 64 positions",
        ),
        (
            {"pseudo_log_likelihood": True},
            "bee\n\u200d\n",
            r"texts\.txt:2: The text .* has no word pieces",
        ),
        ({}, "\n", r"texts\.txt has no text"),
    ],
)
def test_a_bad_line_of_a_file_is_named(fill_options, tmp_path, values, lines, message):
    (tmp_path / "texts.txt").write_text(lines)
    options = fill_options(text=None, input_file=str(tmp_path / "texts.txt"), **values)
    with pytest.raises(ValueError, match=message):
        fill_mask.run(options)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"text": None}, "either --text or --input_file"),
        ({"input_file": "a.txt"}, "either --text or --input_file"),
        (
            {"pseudo_log_likelihood": True, "top_k": 3},
            "--top_k cannot be combined with",
        ),
        (
            {"pseudo_log_likelihood": True, "iterative": True},
            "--iterative cannot be combined with",
        ),
        (
            {"text": None, "input_file": "a.txt", "output_file": "./a.txt"},
            "would be overwritten",
        ),
    ],
)
def test_flags_that_do_not_go_together_are_refused(fill_options, values, message):
    with pytest.raises(ValueError, match=message):
        fill_options(**values)
