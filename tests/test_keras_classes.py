"""`import bert_tf` is enough for `keras.saving.load_model`."""

import os
import re
import subprocess
import sys

from bert_tf import keras_classes

PROGRAM = """
import sys

{imports}

assert not [name for name in sys.modules if name.startswith("bert_tf.modeling")]
layer = keras.saving.deserialize_keras_object({{
    "module": "bert_tf.optimization.schedules",
    "registered_name": "bert_tf>WarmupLinearDecay",
    "class_name": "WarmupLinearDecay",
    "config": {config},
}})
print(type(layer).__name__)
"""


def test_every_registered_class_is_named(project_root):
    found = {}
    for path in (project_root / "bert_tf").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        module = ".".join(path.relative_to(project_root).with_suffix("").parts)
        for name in re.findall(
            r'^@keras\.saving\.register_keras_serializable\("bert_tf"\)\nclass (\w+)',
            text,
            re.MULTILINE,
        ):
            found[name] = module
    assert found == keras_classes.MODULE_OF


def test_keras_finds_classes_whichever_is_imported_first(project_root):
    from bert_tf.optimization import schedules

    config = schedules.WarmupLinearDecay(1e-3, 10, 2).get_config()
    hook = "import wrapt\nwrapt.register_post_import_hook(id, 'keras')\n"
    for imports in (
        "import bert_tf\nimport keras",
        "import keras\nimport bert_tf",
        f"{hook}import bert_tf\nimport keras",  # As tracing libraries do.
    ):
        program = PROGRAM.format(imports=imports, config=config)
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(project_root)},
            check=True,
        )
        assert done.stdout.split() == ["WarmupLinearDecay"]
