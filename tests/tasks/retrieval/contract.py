"""Queries whose passages share no word with them, for `test_contract`."""

from tests.tasks import contract
from tests.tasks.retrieval import pairs


def write_errors(folder):
    path = folder / "wrong.jsonl"
    records = [{"query": "a", "passage": " "}, {"query": "b", "passage": "not there"}]
    path.write_text(pairs.json_lines(records))
    return {"eval_file": str(path)}


CONTRACT = contract.Contract(
    write_data=pairs.write,
    data={
        "train_file": "train.jsonl",
        "eval_file": "dev.jsonl",
        "predict_file": "queries.txt",
        "corpus_file": "corpus.txt",
    },
    values=contract.VALUES | {"max_query_length": 8},
    write_errors=write_errors,
    errors=("the passage is empty", "the passage of 'dev-2' is not in"),
    scores={"eval_mrr": 1.0, "eval_recall_at_1": 1.0},
    num_steps=40,  # int(16 / 8 * 20)
    inputs=["the bee", "the river"],
    answers=[{"query": "the bee"}, {"query": "the river"}],
    wrong_inputs=["a text", [("a", "b")], [7]],
    expected="[Ee]xpected a (list of texts|text)",
    needs_head=False,
)
