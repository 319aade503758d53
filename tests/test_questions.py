"""The four questions of CONTRIBUTING.md name every file that the code enters."""

import contextlib
import re
import sys
import threading

import pytest

from bert_tf.checkpoints import loading
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import run
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import workflow as pretraining_data_workflow
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import task
from bert_tf.training import loop
from tests import test_contributing
from tests import test_layout
from tests.tasks.question_answering import contract

MAX_FILES_PER_QUESTION = 8
QUESTIONS = re.findall(r"^### (.+\?)$", test_contributing.TEXT, re.MULTILINE)


def test_there_are_four_questions():
    assert len(QUESTIONS) == 4


@contextlib.contextmanager
def traced(entered):
    """Adds the files of the package whose functions the block calls."""
    package = f"{test_contributing.ROOT / 'bert_tf'}/"

    def note(frame, event, argument):
        code = frame.f_code
        if code.co_filename.startswith(package) and code.co_name != "<module>":
            entered.add(code.co_filename.removeprefix(package))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.fixture(scope="module")
def entered(golden, dropout_config, tmp_path_factory):
    """Returns, for each of the four questions, the files that a tiny run enters."""
    folder = tmp_path_factory.mktemp("run")
    files = [set() for _ in QUESTIONS]
    text, records = folder / "text.txt", str(folder / "records.tfrecord")
    text.write_text("the queen\nthe ball\n\nthe river\nthe lamp\n")
    vocab_file = str(golden / "vocab.txt")
    checkpoint = str(golden / "model" / "bert_model.ckpt")
    sizes = {"max_seq_length": 16, "max_predictions_per_seq": 2}
    with traced(files[0]):
        pretraining_data_workflow.run(
            pretraining_data_options.CreatePretrainingDataOptions(
                input_file=str(text),
                output_file=records,
                vocab_file=vocab_file,
                **sizes,
            )
        )
    with traced_calls(loop.Trainer, "_advance", files[1]):
        pretraining_workflow.run(
            pretraining_options.RunPretrainingOptions(
                input_file=records,
                bert_config_file=dropout_config,
                output_dir=str(folder / "pretraining"),
                do_train=True,
                num_train_steps=1,
                num_warmup_steps=1,
                train_batch_size=2,
                **sizes,
            )
        )
    with traced(files[2]):
        start = starting_point.find(checkpoint, vocab_file=vocab_file)
        loading.model_of(start.source)
    contract.write_data(folder)
    with traced_calls(task.QuestionAnswering, "evaluate", files[3]):
        run.run(
            question_answering_options.RunSquadOptions(
                train_file=str(folder / "train.json"),
                predict_file=str(folder / "dev.json"),
                init_checkpoint=checkpoint,
                vocab_file=vocab_file,
                output_dir=str(folder / "squad"),
                do_train=True,
                do_eval=True,
                **contract.CONTRACT.values | {"num_train_epochs": 1.0},
            )
        )
    return dict(zip(QUESTIONS, files, strict=True))


@contextlib.contextmanager
def traced_calls(owner, name, entered):
    """Adds the files that the calls of a method enter within the block."""
    original = getattr(owner, name)

    def call(*arguments):
        with traced(entered):
            return original(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, call)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_names_the_files_that_the_code_enters(question, entered):
    text = test_contributing.section(f"### {question}")
    steps = "\n".join(re.findall(r"^\d+\. .+", text, re.MULTILINE))
    to_open = set(re.findall(r"`([\w/]+\.py)`", steps))
    named = tuple(re.findall(r"`([\w/]+(?:/|\.py))`", text))
    everywhere = {f"{name}.py" for name in (*test_layout.LEAVES, "file_errors")}
    assert 1 <= len(to_open) <= MAX_FILES_PER_QUESTION
    assert to_open <= entered[question]
    others = sorted(entered[question] - everywhere)
    assert [path for path in others if not path.startswith(named)] == []
