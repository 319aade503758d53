"""Words of rain and words of sun, for `test_contract` and the tests of this folder."""

from tests.tasks import contract

RAIN = ("wet", "rain", "cloud", "storm")
SUN = ("dry", "heat", "light", "noon")


def texts(words, count):
    return [f"{words[i % 4]} and {words[(i + i // 4) % 4]}" for i in range(count)]


def table(examples):
    return "\n".join(["text\tlabel", *map("\t".join, examples)]) + "\n"


def write_data(folder):
    """Writes train.tsv (24 rows), dev.tsv (8) and test.tsv (5)."""
    rows = [
        pair
        for rain, sun in zip(texts(RAIN, 16), texts(SUN, 16), strict=True)
        for pair in ((rain, "rain"), (sun, "sun"))
    ]
    (folder / "train.tsv").write_text(table(rows[:24]))
    (folder / "dev.tsv").write_text(table(rows[24:]))
    (folder / "test.tsv").write_text("text\n" + "\n".join(t for t, _ in rows[:5]))


def write_errors(folder):
    path = folder / "wrong.tsv"
    path.write_text(table([("wet", "fog"), ("dry", ""), ("wet", "rain")]))
    return {"eval_file": str(path)}


CONTRACT = contract.Contract(
    write_data=write_data,
    data=contract.TABLES,
    write_errors=write_errors,
    errors=("the label 'fog' is not one of rain, sun", "the label is empty"),
    scores={"eval_accuracy": 1.0},
    num_steps=60,  # int(24 / 8 * 20)
    inputs=["wet and cloud", "dry"],
    answers=[{"label": "rain"}, {"label": "sun"}],
    wrong_inputs=["a text", [("a", "b")], [1]],
    expected="[Ee]xpected a (list of texts|string)",
)
