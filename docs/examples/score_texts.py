# %% [markdown]
# # Score texts
#
# Which text is more natural? A masked-word model hides one word piece after the other
# and predicts it. The sum of the log-probabilities is higher for a likelier text.

# %%
import bert_tf

texts = ["The cat sat on the mat.", "The cat sat in the mat.", "Mat the on sat cat."]
scores = bert_tf.score_texts("bert-base-uncased", texts)

# %%
for text, score in zip(texts, scores, strict=True):
    print(f"{score['pseudo_log_likelihood']:8.2f}  {text}")
