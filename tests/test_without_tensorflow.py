"""What must work where TensorFlow is not installed, in processes without it."""

import ast
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = sorted(path.stem for path in (ROOT / "tools").glob("[a-z]*.py"))

# Python looks at meta_path first; there, TensorFlow is unavailable.
BLOCKER = """
import sys

class NoTensorFlow:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0].startswith("tensorflow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTensorFlow())
"""


def _run(program, blocker=BLOCKER, **environment):
    return subprocess.run(
        [sys.executable, "-c", blocker + program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        check=False,
    )


def test_the_package_its_names_and_the_plain_tokenizers_import():
    program = (
        "import bert_tf\n"
        "assert 'BertModel' in dir(bert_tf)\n"
        "assert set(bert_tf.__all__) <= set(dir(bert_tf))\n"
        "bert_tf.BasicTokenizer, bert_tf.FullTokenizer, bert_tf.Vocabulary\n"
        "bert_tf.tokenization\n"
        "from bert_tf import command_line, files, options, progress\n"
        "from bert_tf.serving import server\n"  # So it listens after a second.
        "assert 'keras' not in sys.modules\n"
    )
    assert _run(program).stderr == ""


@pytest.mark.slow
def test_models_and_plain_tokenizers_need_no_tensorflow_text(project_root):
    folder = project_root / "tests" / "checkpoints" / "foreign" / "hugging_face"
    program = (
        "import bert_tf\n"
        f"model, tokenizer = bert_tf.from_pretrained({str(folder / 'encoder')!r})\n"
        "outputs = model(tokenizer(['the cat']))\n"
        "assert 'tensorflow_text' not in sys.modules\n"
        "print(outputs['pooled_output'].shape)\n"
    )
    done = _run(program, BLOCKER.replace('"tensorflow"', '"tensorflow_text"'))
    assert done.stdout == "(1, 16)\n", done.stderr


def test_an_unknown_name_is_an_attribute_error():
    import bert_tf

    with pytest.raises(AttributeError, match="'bert_tf' has no attribute 'BertModle'"):
        bert_tf.BertModle  # noqa: B018


def test_every_public_name_is_there_and_known_to_editors():
    import bert_tf

    tree = ast.parse(pathlib.Path(bert_tf.__file__).read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    names = {node.names[0].asname: node.module for node in block.body}
    for name in set(bert_tf.__all__) - {"__version__"}:
        assert getattr(bert_tf, name) is not None, name
        assert names.pop(name) == bert_tf._MODULE_OF[name]
    assert set(names) <= set(bert_tf._SUBPACKAGES)


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX")
def test_the_encoder_imports_on_another_backend():
    program = (
        "import bert_tf, bert_tf.modeling.config, bert_tf.modeling.bert\n"
        "bert_tf.BertConfig, bert_tf.BertModel, bert_tf.BertPretrainer\n"
        "import keras\n"
        "assert keras.backend.backend() == 'jax'\n"
    )
    done = _run(program, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    assert done.stderr == ""
    assert done.returncode == 0


def test_help_needs_no_tensorflow():
    program = (
        "from bert_tf import command_line\n"
        f"for name in {TOOLS!r}:\n"
        "    assert command_line.main([name, '--help']) == 0\n"
        "assert command_line.main(['--help']) == 0\n"
        "assert command_line.main(['--version']) == 0\n"
        "assert 'keras' not in sys.modules\n"
    )
    done = _run(program)
    assert (done.returncode, done.stderr) == (0, "")
    for tool in TOOLS:
        assert f"Usage: bert_tf {tool} " in done.stdout
    assert "Usage: bert_tf SUBCOMMAND" in done.stdout


NO_TEXT_OPS = BLOCKER.replace('"tensorflow"', '"tensorflow_text"')


@pytest.mark.slow
def test_a_task_is_trained_and_evaluated_without_tensorflow_text(golden, tmp_path):
    """As on Windows, for which there is no TensorFlow Text."""
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "a b\t0\nthe é\t1\n" * 4)
    flags = [
        "--do_train",
        "--do_eval",
        "--do_predict",
        *(f"--{part}_file={tmp_path / 'train.tsv'}" for part in ("train", "eval")),
        f"--predict_file={tmp_path / 'train.tsv'}",
        f"--bert_config_file={golden / 'model' / 'bert_config.json'}",
        f"--vocab_file={golden / 'vocab.txt'}",
        f"--output_dir={tmp_path / 'run'}",
        "--max_seq_length=8",
        "--train_batch_size=4",
        "--num_train_epochs=1",
    ]
    program = (
        "from tools import run_classifier, export_saved_model\n"
        f"assert run_classifier.main({flags!r}) == 0\n"
        "from bert_tf.tokenization import full, in_graph\n"
        f"vocab_file = {str(golden / 'vocab.txt')!r}\n"
        "texts = ['The été, 中文 [MASK]', '', 'unaffable']\n"
        "ids = in_graph.InGraphTokenizer(vocab_file).tokenize(texts)\n"
        "plain = full.FullTokenizer(vocab_file)\n"
        "assert ids.dtype == 'int32'\n"
        "for text, row in zip(texts, ids.to_list()):\n"
        "    assert row == plain.convert_tokens_to_ids(plain.tokenize(text))\n"
        f"flags = ['--output_dir={tmp_path / 'run'}',\n"
        f"         '--export_dir={tmp_path / 'export' / '1'}']\n"
        "assert export_saved_model.main(flags) == 1\n"
    )
    done = _run(program, NO_TEXT_OPS)
    assert done.returncode == 0, done.stderr
    assert "eval_accuracy" in done.stdout
    assert done.stderr.count("TensorFlow Text is not installed (on Windows, use") == 1
    [last] = done.stderr.splitlines()[-1:]
    assert "tokenization in the graph needs its operations" in last
    assert not (tmp_path / "export" / "1").exists()
