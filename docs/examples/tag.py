# %% [markdown]
# # Tag words
#
# Each example is a list of words and a list with one tag per word. A DataFrame or a
# CSV file may have one word per row, in the columns `sentence`, `word` and `tag`.

# %%
import bert_tf

train = [
    (["Clara", "lives", "in", "Oslo", "."], ["B-PER", "O", "O", "B-LOC", "O"]),
    (["Anna", "moved", "to", "Rome", "."], ["B-PER", "O", "O", "B-LOC", "O"]),
    (["The", "train", "left", "Paris", "."], ["O", "O", "O", "B-LOC", "O"]),
    (["Yesterday", "Max", "called", "."], ["O", "B-PER", "O", "O"]),
    (["Lena", "Berg", "paints", "."], ["B-PER", "I-PER", "O", "O"]),
    (["We", "met", "Tom", "in", "Bern", "."], ["O", "O", "B-PER", "O", "B-LOC", "O"]),
    (["New", "York", "is", "large", "."], ["B-LOC", "I-LOC", "O", "O", "O"]),
    (["Nobody", "saw", "Paul", "."], ["O", "O", "B-PER", "O"]),
]

# %%
model = bert_tf.fine_tune.tag(
    train,
    "bert-base-uncased",
    "runs/names",
    validation=0.25,
    num_train_epochs=10,
    train_batch_size=2,
    max_seq_length=32,
)

# %%
[answer] = model.predict(["Eva flew to Madrid."])
list(zip(answer["words"], answer["tags"], strict=True))
