"""Names of people and places in short sentences, for `test_contract`."""

import random

from tests.tasks import contract
from tests.tasks.token_classification import names


def write_data(folder):
    generator = random.Random(7)
    for name, count in (("train", 240), ("dev", 40), ("test", 12)):
        sentences = [names.sentence(generator) for _ in range(count)]
        (folder / f"{name}.txt").write_text(names.column_file(sentences))


def write_errors(folder):
    wrong = folder / "wrong"
    wrong.mkdir()
    (wrong / "train.txt").write_text("a B-X\nb O\n\nc B-Y\nd O\n")
    (wrong / "dev.txt").write_text("a B-X\nb O\n\nc I-Y\n\nd\n")
    (wrong / "test.txt").write_text("a B-X\n")
    return {"data_dir": str(wrong)}


CONTRACT = contract.Contract(
    write_data=write_data,
    data={"data_dir": ""},
    values=contract.VALUES | {"learning_rate": 4e-3, "num_train_epochs": 4.0},
    write_errors=write_errors,
    errors=("expected 2 columns", "'I-Y' cannot start an entity"),
    scores={"eval_f1": 0.95},
    num_steps=120,  # int(240 / 8 * 4)
    inputs=[
        ["Anna", "Winter", "makes", "bread"],
        "in Lund, says Otto",
    ],
    answers=[
        {"tags": ["B-PER", "I-PER", "O", "O"]},
        {"words": ["in", "Lund", ",", "says", "Otto"]},
    ],
    wrong_inputs=["a text", [["a", ""]], ["a", 7]],
    expected="[Ee]xpected a (list of sentences|string or a list)",
)
