"""Every example with >>> in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import numpy as np

import bert_tf
from bert_tf.tokenization import full

MODEL = "bert-base-uncased"
# Their answers need trained weights or a file; docs/examples has tested scripts.
NOT_RUN = {
    "bert_tf.fine_tune.classify": "reads reviews.csv",
    "bert_tf.serving.predictors.load": "reads runs/topics",
    "bert_tf.preparation.wikitext.paragraphs": "leaves out an argument",
}


def docstrings():
    """Returns every docstring with an example, by the name of its object."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = {}
    for info in pkgutil.walk_packages(bert_tf.__path__, "bert_tf."):
        # Importing __main__ would start the command line.
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for test in finder.find(module, info.name, module):
            if test.examples:
                examples[test.name] = test
    return examples


class Checker(doctest.OutputChecker):
    """Compares what is printed, except for answers of a released model."""

    def __init__(self, *, needs_weights):
        self._needs_weights = needs_weights

    def check_output(self, want, got, optionflags):
        if self._needs_weights:
            return bool(got) == bool(want)
        return super().check_output(want, got, optionflags)


def test_examples_in_docstrings_print_what_they_say(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faults, num_run = [], 0
    for name, test in docstrings().items():
        if name in NOT_RUN:
            continue
        needs_weights = any(MODEL in example.source for example in test.examples)
        needs_weights |= "pack(tokenizer" in test.examples[0].source
        for example in test.examples:
            example.source = example.source.replace(f'"{MODEL}"', repr(str(tiny)))
        test.globs |= {
            "bert_tf": bert_tf,
            "np": np,
            "tokenizer": full.FullTokenizer(tiny / "vocab.txt"),
        }
        runner = doctest.DocTestRunner(
            Checker(needs_weights=needs_weights),
            optionflags=doctest.NORMALIZE_WHITESPACE,
        )
        runner.run(test, out=faults.append)
        num_run += 1
    assert not faults, "".join(faults)
    assert num_run > 20
