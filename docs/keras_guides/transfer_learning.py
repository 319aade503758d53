# %% [markdown]
# # Transfer learning with Keras
#
# The steps of Keras's guide "Transfer learning and fine-tuning", with `BertModel` as
# the pretrained layer: train a new head on the frozen encoder, then unfreeze the
# encoder and fine-tune it all at a small learning rate.

# %%
import keras
import numpy as np

import bert_tf

texts = [
    "Stir the soup until it thickens.",
    "Bake the bread for forty minutes.",
    "Chop two onions and fry them in butter.",
    "Heavy rain is expected tonight.",
    "A cold front brings snow to the hills.",
    "The morning will be sunny and dry.",
]
labels = np.array([0, 0, 0, 1, 1, 1])  # 0: cooking, 1: weather.

encoder, tokenizer = bert_tf.from_pretrained("bert-base-uncased", head="encoder")
features = tokenizer(texts, max_seq_length=16)

# %% [markdown]
# A new head on the frozen encoder. `training=False` also keeps its dropout off.

# %%
encoder.trainable = False
inputs = {
    name: keras.Input((None,), dtype="int32", name=name)
    for name in ("input_ids", "input_mask", "segment_ids")
}
vectors = encoder(inputs, training=False)["pooled_output"]
outputs = keras.layers.Dense(2)(keras.layers.Dropout(0.2)(vectors))
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(features, labels, epochs=2, batch_size=3)

# %% [markdown]
# All layers, at a small learning rate. `compile` again, so that the change counts.

# %%
encoder.trainable = True
model.compile(
    optimizer=keras.optimizers.Adam(2e-5),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(features, labels, epochs=2, batch_size=3, validation_data=(features, labels))

# %%
model.save("topics.keras")
loaded = keras.saving.load_model("topics.keras")
loaded.predict(features)
