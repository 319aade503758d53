"""Questions about rivers, every third without an answer, for `test_contract`."""

import json

from tests.tasks import contract

CONTEXTS = [
    (f"{first} and {second}", first, second)
    for first in ("bee", "lamp", "baker", "river")
    for second in ("honey", "midnight", "queen", "ball")
]


def squad(contexts):
    """Returns SQuAD 2.0: which word is first, which one last, and which comes later."""
    paragraphs = []
    for number, (context, first, second) in enumerate(contexts):
        asked = {"first?": first, "last?": second, "and then?": ""}
        qas = [
            {
                "id": f"{number}-{question}",
                "question": question,
                "answers": [{"text": text, "answer_start": context.index(text)}]
                if text
                else [],
                "is_impossible": not text,
            }
            for question, text in asked.items()
        ]
        paragraphs.append({"context": context, "qas": qas})
    return json.dumps({"data": [{"paragraphs": paragraphs}]}, indent=1)


def write_data(folder):
    (folder / "train.json").write_text(squad(CONTEXTS))
    (folder / "dev.json").write_text(squad(CONTEXTS[:8]))


def write_errors(folder):
    wrong = squad(CONTEXTS[:2]).replace('"text": "bee"', '"text": "cow"')
    (folder / "wrong.json").write_text(wrong)
    return {"train_file": str(folder / "wrong.json")}


CONTRACT = contract.Contract(
    write_data=write_data,
    data={"train_file": "train.json", "predict_file": "dev.json"},
    values=contract.VALUES
    | {"max_query_length": 6, "doc_stride": 8, "version_2_with_negative": True},
    write_errors=write_errors,
    errors=("'cow' is not in its context", "'cow' is not in its context"),
    scores={"eval_f1": 80.0},
    num_steps=120,  # int(48 / 8 * 20)
    inputs=[("first?", "lamp and queen"), ("and then?", "bee and ball, ball and bee")],
    answers=[{"answer": "lamp", "start": 0, "end": 4}, {}],
    wrong_inputs=["who?", ["who?"], [("who?", " ")], [("who?", 1)]],
    expected=r"[Ee]xpected .*\(question, context\)|its context is blank",
)
