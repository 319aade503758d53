"""Examples whose correct ending does not repeat a word, for `test_contract`."""

from tests.tasks import contract

STARTS = ("the bee", "the lamp", "the baker", "the river")
RIGHT = ("and honey", "is warm", "is slow", "at midnight")
WRONG = ("queen queen", "ball ball", "wheel wheel", "twelve twelve")


def rows(first, count):
    """Returns (start, three endings, number of the one that is not a repetition)."""
    examples = []
    for index in range(first, first + count):
        label = index % 3
        endings = [WRONG[index % 4], WRONG[(index + 1 + index // 4) % 4]]
        endings.insert(label, RIGHT[(index // 2) % 4])
        examples.append((STARTS[index % 4], endings, label))
    return examples


def table(examples, *, with_labels):
    lines = ["startphrase\tending0\tending1\tending2" + "\tlabel" * with_labels]
    for start, endings, label in examples:
        lines.append("\t".join([start, *endings, *([str(label)] * with_labels)]))
    return "\n".join(lines) + "\n"


def write_data(folder):
    (folder / "train.tsv").write_text(table(rows(0, 32), with_labels=True))
    (folder / "dev.tsv").write_text(table(rows(32, 8), with_labels=True))
    (folder / "test.tsv").write_text(table(rows(32, 5), with_labels=False))


def write_errors(folder):
    path = folder / "wrong.tsv"
    path.write_text(
        table([("he", "abc", 3), ("she", ["a", "", "b"], 0)], with_labels=True)
    )
    return {"eval_file": str(path)}


CONTRACT = contract.Contract(
    write_data=write_data,
    data=contract.TABLES,
    write_errors=write_errors,
    errors=("the label is '3'", "ending 1 is empty"),
    scores={"eval_accuracy": 1.0},
    num_steps=80,  # int(32 / 8 * 20)
    inputs=[
        ("the lamp", ["ball ball", "is slow", "wheel wheel"]),
        ("the bee", ("is warm", "twelve twelve twelve")),
    ],
    answers=[{"label": "1", "ending": "is slow"}, {"label": "0"}],
    wrong_inputs=[
        "a text",
        ["a text"],
        [("a", "b")],
        [("a", ["b"])],
        [("a", ["b", ""])],
        [("a", 1)],
    ],
    expected=r"[Ee]xpected .*\(start, endings\)",
)
