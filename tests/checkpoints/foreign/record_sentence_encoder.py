"""Records what transformers and sentence-transformers compute for texts.

    python record_sentence_encoder.py MODEL_FOLDER TEXTS.json RESULT.npz

TEXTS.json is a list of texts. RESULT.npz has, for each batch i of texts, ids/i and
mask/i [B, S], and states/i [L + 1, B, S, H] and pooled/i [B, H] of transformers'
BertModel in float32; exact/i, the states computed in float64, which tell whose rounding
a difference is; and, for all texts, vectors [texts, H] of sentence-transformers.
Needs transformers, torch and sentence-transformers.
"""

import json
import pathlib
import sys

import numpy as np
import sentence_transformers
import torch
import transformers

BATCH_SIZE = 25
MAX_LENGTH = 128


def main(model_folder, texts_path, result_path):
    texts = json.loads(pathlib.Path(texts_path).read_text(encoding="utf-8"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    model = transformers.BertModel.from_pretrained(model_folder).eval()
    found = {}
    for number, start in enumerate(range(0, len(texts), BATCH_SIZE)):
        batch = tokenizer(
            texts[start : start + BATCH_SIZE],
            padding="longest",
            truncation=True,
            max_length=MAX_LENGTH,
            return_tensors="pt",
        )
        outputs = computed(model.float(), batch)
        exact = computed(model.double(), batch)
        found[f"ids/{number}"] = batch["input_ids"].numpy()
        found[f"mask/{number}"] = batch["attention_mask"].numpy()
        found[f"states/{number}"] = torch.stack(outputs.hidden_states).numpy()
        found[f"exact/{number}"] = torch.stack(exact.hidden_states).float().numpy()
        found[f"pooled/{number}"] = outputs.pooler_output.numpy()
    encoder = sentence_transformers.SentenceTransformer(model_folder, device="cpu")
    found["vectors"] = encoder.encode(texts, normalize_embeddings=True)
    found["max_length"] = encoder.max_seq_length
    np.savez(result_path, **found)


def computed(model, batch):
    with torch.no_grad():
        return model(**batch, output_hidden_states=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
