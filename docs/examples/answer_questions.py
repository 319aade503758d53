# %% [markdown]
# # Answer questions
#
# An example is a question, a text that answers it, and the answer as it is written in
# the text. A SQuAD file works as well: `answer_questions("train-v1.1.json", ...)`. A
# model needs thousands of questions to answer well; these few show the form.

# %%
import bert_tf

river = "The river rises near Oslo and reaches the sea after ninety miles."
bridge = "Lena Winter built the bridge in 1887. It was closed for repairs in 1950."
train = [
    ("Where does the river rise?", river, "near Oslo"),
    ("How long is the river?", river, "ninety miles"),
    ("Who built the bridge?", bridge, "Lena Winter"),
    ("When was the bridge built?", bridge, "1887"),
    ("Why was the bridge closed?", bridge, "for repairs"),
]

# %%
model = bert_tf.fine_tune.answer_questions(
    train,
    "bert-base-uncased",
    "runs/questions",
    num_train_epochs=4,
    train_batch_size=2,
    max_seq_length=64,
    max_query_length=24,
    doc_stride=16,
)

# %%
model.predict([("Who painted the door?", "The door was painted by Max Berg.")])
