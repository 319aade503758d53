"""What must work where TensorFlow is not installed, in processes without it."""

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


def test_the_blocker_blocks():
    done = _run("import tensorflow")
    assert done.returncode == 1
    assert "No module named 'tensorflow'" in done.stderr


def test_the_package_its_names_and_the_plain_tokenizers_import():
    program = (
        "import bert_tf\n"
        "assert 'BertModel' in dir(bert_tf)\n"
        "assert set(bert_tf.__all__) <= set(dir(bert_tf))\n"
        "bert_tf.BasicTokenizer, bert_tf.FullTokenizer, bert_tf.Vocabulary\n"
        "bert_tf.tokenization\n"
        "from bert_tf import command_line, files, options, progress\n"
        "assert 'keras' not in sys.modules\n"
    )
    assert _run(program).stderr == ""


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


def test_every_public_name_is_there():
    import bert_tf

    for name in bert_tf.__all__:
        assert getattr(bert_tf, name) is not None, name


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


@pytest.mark.parametrize("tool", TOOLS)
def test_help_needs_no_tensorflow(tool):
    program = (
        f"import runpy; sys.argv = [{tool!r}, '--help']\n"
        f"runpy.run_path({str(ROOT / 'tools' / f'{tool}.py')!r}, run_name='__main__')\n"
    )
    done = _run(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: {tool} " in done.stdout


@pytest.mark.parametrize(
    "argv, shown",
    [
        (["--help"], "Usage: bert_tf SUBCOMMAND"),
        (["--version"], "bert_tf "),
        (["classify", "--help"], "Usage: bert_tf classify "),
    ],
)
def test_the_one_command_needs_no_tensorflow_for_its_help(argv, shown):
    program = (
        f"import runpy; sys.argv = {['bert_tf', *argv]!r}\n"
        "runpy.run_module('bert_tf', run_name='__main__')\n"
    )
    done = _run(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout
