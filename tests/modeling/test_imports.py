"""What `import bert_tf.modeling` loads, where TensorFlow is installed."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import bert_tf.modeling

print(*(name for name in sys.modules if name.startswith("bert_tf.")))
"""
# Modules outside the package that it may load.
LEAVES = {
    "bert_tf.cores",
    "bert_tf.files",
    "bert_tf.file_errors",
    "bert_tf.islands",
    "bert_tf.json_values",
}
MODELS = {
    "bert",
    "classifier",
    "left_to_right",
    "multiple_choice",
    "pretrainer",
    "rankers",
    "span_predictor",
    "token_classifier",
}


def test_modeling_loads_every_model_and_nothing_else_of_the_package(project_root):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(project_root)},
        check=True,
    )
    loaded = set(done.stdout.split())
    assert loaded >= {f"bert_tf.modeling.{name}" for name in MODELS}
    others = {name for name in loaded if not name.startswith("bert_tf.modeling")}
    assert others <= LEAVES
