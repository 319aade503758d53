import numpy as np
import pytest

from bert_tf.data import tfrecord
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import tokenized_text
from bert_tf.pretraining_data import workflow as pretraining_data_workflow
from bert_tf.tokenization import vocabulary as vocabulary_module

CHARACTERS = "使用语言模型来预测下一个词的概率"
PIECES = [*vocabulary_module.SPECIAL_TOKENS, *CHARACTERS, "play", "##ing", ",", "is"]


pytest.importorskip("jieba")


@pytest.mark.parametrize(
    "sentence, starts",
    [
        # 使用 / 语言 / 模型 / 来 / 预测
        ("使用语言模型来预测", [1, 0, 1, 0, 1, 0, 1, 1, 0]),
        ("语言，模型", [1, 0, 1, 0]),  # No word goes across what is not Chinese.
        ("a语b言c", [1, 1]),
        ("playing is", []),
    ],
)
def test_jieba_groups_chinese_characters(sentence, starts):
    found = tokenized_text._word_starts([sentence], tokenized_text.load_jieba())
    assert found.tolist() == [bool(flag) for flag in starts]


def created(tmp_path, **flags):
    text = "使用语言模型来 playing 预测下一个词的概率\n" * 8
    (tmp_path / "text.txt").write_text(f"{text}\n{text}", encoding="utf-8")
    vocabulary_module.Vocabulary(PIECES).save(tmp_path / "vocab.txt")
    options = pretraining_data_options.CreatePretrainingDataOptions(
        input_file=str(tmp_path / "text.txt"),
        output_file=str(tmp_path / "records"),
        vocab_file=str(tmp_path / "vocab.txt"),
        max_seq_length=48,
        dupe_factor=4,
        **flags,
    )
    pretraining_data_workflow.create_data(options)
    records = tfrecord.RecordFiles(options.output_file)
    return [records.decoded(row) for row in range(records.num_records)]


def test_characters_of_a_chinese_word_are_masked_together(tmp_path):
    unsplit = []
    for flags in ({}, {"whole_word_segmenter": "jieba"}):
        split = 0
        for row in created(tmp_path, do_whole_word_mask=True, **flags):
            chosen = np.zeros(48, bool)
            used = row["masked_lm_weights"] > 0
            chosen[row["masked_lm_positions"][used]] = True
            ids = row["input_ids"].copy()
            ids[row["masked_lm_positions"][used]] = row["masked_lm_ids"][used]
            places = np.flatnonzero(ids == PIECES.index("概"))
            split += sum(chosen[p] != chosen[p + 1] for p in places if p < 46)
        unsplit.append(split == 0)
    # 概率 is a word; the last two pieces of a cut row may lack 率.
    assert unsplit == [False, True]
