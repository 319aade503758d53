import numpy as np
import pytest

from bert_tf.data import tfrecord
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import segmentation
from bert_tf.pretraining_data import workflow as pretraining_data_workflow
from bert_tf.tokenization import vocabulary as vocabulary_module

CHARACTERS = "使用语言模型来预测下一个词的概率"
PIECES = [*vocabulary_module.SPECIAL_TOKENS, *CHARACTERS, "play", "##ing", ",", "is"]


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("语言 12 n\n模型\n语言模型\n预测\n概率\n\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "sentence, starts",
    [
        ("使用语言模型", [1, 1, 1, 0, 0, 0]),  # The longest word of the list counts.
        ("语言，模型", [1, 0, 1, 0]),  # No word goes across what is not Chinese.
        ("a语b言c", [1, 1]),
        ("playing is", []),
    ],
)
def test_a_list_of_words_is_applied_from_left_to_right(words, sentence, starts):
    segmenter = segmentation.create_segmenter(words)
    assert segmenter.starts([sentence]).tolist() == [bool(flag) for flag in starts]


def test_the_first_word_of_a_file_with_a_byte_order_mark_counts(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("语言\n模型\n", encoding="utf-8-sig")
    segmenter = segmentation.create_segmenter(str(path))
    assert segmenter.starts(["语言模型"]).tolist() == [True, False, True, False]


def test_jieba_segments_words_without_a_list():
    pytest.importorskip("jieba")
    segmenter = segmentation.create_segmenter("jieba")
    # 使用 / 语言 / 模型 / 来 / 预测
    starts = [True, False, True, False, True, False, True, True, False]
    assert segmenter.starts(["使用语言模型来", "预测"]).tolist() == starts


def test_a_file_without_words_is_refused(tmp_path):
    path = tmp_path / "empty.txt"
    path.write_text("\n \n")
    with pytest.raises(
        ValueError, match="has no words; expected one Chinese word per line"
    ):
        segmentation.create_segmenter(str(path))


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


def test_characters_of_a_chinese_word_are_masked_together(tmp_path, words):
    unsplit = []
    for flags in ({}, {"whole_word_segmenter": words}):
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
    # 概率 is a word of the list; the last two pieces of a cut row may lack 率.
    assert unsplit == [False, True]


def test_records_without_masks_tell_words(tmp_path, words):
    rows = created(tmp_path, dynamic_masking=True, whole_word_segmenter=words)
    inside = {PIECES.index(piece) for piece in ("言", "型", "测", "率", "##ing")}
    inside |= {PIECES.index("模")}  # In 语言模型.
    for row in rows:
        ids = row["input_ids"]
        expected = (row["input_mask"] > 0) & ~np.isin(ids, [*inside, 2, 3])
        np.testing.assert_array_equal(row["word_starts"] > 0, expected)
