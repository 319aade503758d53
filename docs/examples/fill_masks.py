# %% [markdown]
# # Fill masks
#
# A pretrained model predicts the words behind [MASK].

# %%
import bert_tf

texts = ["The capital of France is [MASK].", "The [MASK] barked at the [MASK]."]
found = bert_tf.fill_masks("bert-base-uncased", texts, top_k=3)

# %%
for text, answer in zip(texts, found, strict=True):
    print(text)
    for mask in answer["masks"]:
        print("  ", ", ".join(f"{c['token']} {c['probability']:.2f}" for c in mask))
