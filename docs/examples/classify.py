# %% [markdown]
# # Classify texts
#
# Examples are a list, a pandas DataFrame, or a .csv, .tsv or .jsonl file. With a
# hundred examples per class or more, pass `validation=0.1` to hold out a tenth of them.

# %%
import bert_tf

train = [
    ("Stir the soup until it thickens.", "cooking"),
    ("Bake the bread for forty minutes.", "cooking"),
    ("Chop two onions and fry them in butter.", "cooking"),
    ("Add a pinch of salt to the dough.", "cooking"),
    ("Let the rice rest before serving.", "cooking"),
    ("Whisk the eggs with the sugar.", "cooking"),
    ("Heavy rain is expected tonight.", "weather"),
    ("A cold front brings snow to the hills.", "weather"),
    ("The morning will be sunny and dry.", "weather"),
    ("Strong winds are moving in from the west.", "weather"),
    ("Fog covers the valley until noon.", "weather"),
    ("Temperatures will drop below zero.", "weather"),
]

# %%
model = bert_tf.fine_tune.classify(
    train,
    "bert-base-uncased",
    "runs/topics",
    validation=0.2,
    num_train_epochs=4,
    train_batch_size=4,
    max_seq_length=32,
)

# %%
model.predict(["Peel the potatoes.", "It may hail in the afternoon."])

# %% [markdown]
# The run in `runs/topics` can be loaded, exported and served later.

# %%
bert_tf.load("runs/topics").predict(["Thunder and lightning."])
