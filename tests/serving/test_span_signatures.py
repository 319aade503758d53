"""Answers from a graph are those of Python, for any question and context."""

import random

import numpy as np
import pytest

from bert_tf.serving import predictors
from bert_tf.serving import span_signatures
from tests import ring

WORDS = (
    *("the", "rain", "in", "spain", "bread", "river", "ships", "hello,", "$5.00"),
    *("(1895-1943)", "smith's", "don't", "A.B.", "crème", "brûlée", "e\u0301t\u00e9"),
    *("İstanbul", "ΟΔΟΣ", "ﬁne", "中文字", "x\u00a0y", "\ufffd", "\x01"),
    # Without spaces, with letters whose number changes, or that are unknown.
    *("小红（지우）住在釜山。", "他说😀苹果很好吃", "地지the文éx", "เขาที่rain"),
    *("中e\u0301x", "红队，红队e\u0301红队"),
)
SEPARATORS = (" ", " ", " ", "  ", "\n", "\t ", "\u202f")
# Contexts for special cases.
SPECIAL = (
    "a",  # One piece.
    "\x01",  # A word without any pieces.
    "中文字中文字" * 20,  # One word of many pieces, in many windows.
    "x" * 300,  # One word of one piece, [UNK].
    " \n the rain ",  # White space at both ends.
)


def pairs(count):
    generator = random.Random(11)
    asked = [("the rain", context) for context in SPECIAL]
    for _ in range(count):
        words = generator.choices(WORDS, k=generator.randint(1, 60))
        context = "".join(word + generator.choice(SEPARATORS) for word in words)
        question = " ".join(generator.choices(WORDS, k=generator.randint(0, 12)))
        asked.append((question, context))
    return [(question, context) for question, context in asked if context.strip()]


def ask(trained, asked):
    function = span_signatures.SpanSignatures(trained).functions["serving_default"]
    outputs = function([q for q, _ in asked], [c for _, c in asked])
    columns = {name: values.numpy() for name, values in outputs.items()}
    columns["answer"] = [text.decode() for text in columns["answer"]]
    return columns


@pytest.mark.parametrize(
    "task",
    [
        ring.slow({}),
        ring.slow({"do_lower_case": False}),
        {"version_2_with_negative": True, "null_score_diff_threshold": -0.1},
        # [CLS] is then the only candidate where its score is the highest.
        ring.slow({"version_2_with_negative": True, "n_best_size": 1}),
        # Mostly no span at all; the release says "empty".
        ring.slow({"n_best_size": 1, "max_answer_length": 1}),
        # Every window differs from the next by one piece; windows that touch.
        ring.slow({"doc_stride": 1, "max_seq_length": 16}),
        ring.slow({"doc_stride": 100}),
    ],
    ids=str,
)
def test_a_graph_answers_as_python(write_run, tmp_path, task):
    trained = predictors.load(write_run("squad", tmp_path / "run", **task))
    asked = pairs(60)
    expected = trained.predict(asked)
    # Blank contexts, which Python refuses, come last.
    columns = ask(trained, [*asked, ("who?", " \n"), ("who?", "")])
    if "n_best_size" not in task:  # Otherwise, [CLS] may have won everywhere.
        assert any(columns["answer"])
    for name, blank in (("answer", ""), ("start", 0), ("end", 0)):
        assert [*columns[name]] == [*(one[name] for one in expected), blank, blank]
    for name in ("score", "no_answer_score"):
        scores = [one[name] for one in expected]
        np.testing.assert_allclose(columns[name][:-2], scores, atol=1e-5)
