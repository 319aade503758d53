"""Keys of other libraries' JSON files: which are known, and which have one value here.

The modules of the formats honour some keys, and others have no effect. A setting for
which bert_tf has only one value, and a key that is not in these tables, may change
answers, so both are reported when the checkpoint is opened. docs/checkpoints.md says
what happens to each key.
"""

import json
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from bert_tf.tokenization import vocabulary as vocabulary_module

_KERAS = "class_name config_file dtype module name registered_name trainable"
# File -> its known keys, besides those in `EXPECTED`.
_KNOWN = {
    # The second half is of text generation: transformers 4 wrote it into every file.
    "config.json": """
        _attn_implementation _attn_implementation_autoset _commit_hash _name_or_path
        _num_labels add_cross_attention architectures attention_probs_dropout_prob
        attn_implementation auto_map bos_token_id chunk_size_feed_forward
        classifier_dropout cross_attention_hidden_size directionality dtype eos_token_id
        finetuning_task gradient_checkpointing hidden_act hidden_dropout_prob
        hidden_size id2label initializer_range intermediate_size is_decoder
        is_encoder_decoder label2id layer_norm_eps max_position_embeddings model_type
        num_attention_heads num_hidden_layers num_labels output_attentions
        output_hidden_states output_past pad_token_id pooler_fc_size
        pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type
        position_embedding_type problem_type pruned_heads quantization_config
        return_dict sbert_ce_default_activation_function sentence_transformers
        sep_token_id tf_legacy_loss tie_encoder_decoder tie_word_embeddings
        tokenizer_class torch_dtype torchscript transformers_version type_vocab_size
        use_bfloat16 use_cache vocab_size

        bad_words_ids begin_suppress_tokens decoder_start_token_id diversity_penalty
        do_sample early_stopping encoder_no_repeat_ngram_size
        exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id
        length_penalty max_length min_length no_repeat_ngram_size num_beam_groups
        num_beams num_return_sequences output_scores prefix remove_invalid_values
        repetition_penalty return_dict_in_generate suppress_tokens task_specific_params
        temperature top_k top_p typical_p
    """,
    "tokenizer_config.json": """
        added_tokens_decoder additional_special_tokens auto_map backend bos_token
        chat_template clean_up_tokenization_spaces cls_token_type_id do_lower_case
        eos_token extra_special_tokens is_local local_files_only max_len max_length
        model_input_names model_max_length model_specific_special_tokens name_or_path
        never_split pad_to_multiple_of pad_token_type_id processor_class
        special_tokens_map_file stride strip_accents tokenizer_class tokenizer_file
        truncation_side truncation_strategy use_fast vocab_file
    """,
    "tokenizer.json": """
        added_tokens decoder model normalizer padding post_processor pre_tokenizer
        truncation version
    """,
    "1_Pooling/config.json": """
        embedding_dimension include_prompt pooling_mode pooling_mode_cls_token
        pooling_mode_lasttoken pooling_mode_max_tokens pooling_mode_mean_sqrt_len_tokens
        pooling_mode_mean_tokens pooling_mode_weightedmean_tokens
        word_embedding_dimension
    """,
    "sentence_bert_config.json": """
        do_lower_case max_seq_length modality_config model_args model_kwargs
        module_output_name transformer_task unpad_inputs
    """,
    "config_sentence_transformers.json": """
        __version__ activation_fn default_prompt_name model_type prompts
        similarity_fn_name
    """,
    "KerasHub config.json": f"""
        {_KERAS} config dropout hidden_dim intermediate_dim max_sequence_length
        num_heads num_layers num_segments vocabulary_size
    """,
    "KerasHub task.json": f"""
        {_KERAS} activation backbone config dropout normalize num_classes pooling_mode
        preprocessor
    """,
    "KerasHub preprocessor.json": f"""
        {_KERAS} mask_selection_length mask_selection_rate mask_token_rate
        random_token_rate sequence_length tokenizer
    """,
    "KerasHub tokenizer.json": f"""
        {_KERAS} config lowercase sequence_length special_tokens strip_accents
        vocabulary
    """,
}
# File -> key -> the only value that bert_tf has, which is the libraries' default.
EXPECTED: Mapping[str, Mapping[str, Any]] = {
    "tokenizer_config.json": {
        "tokenize_chinese_chars": True,
        "clean_text": True,
        "do_basic_tokenize": True,
        "split_special_tokens": False,
        "padding_side": "right",
        "unk_token": vocabulary_module.UNK,
        "sep_token": vocabulary_module.SEP,
        "pad_token": vocabulary_module.PAD,
        "cls_token": vocabulary_module.CLS,
        "mask_token": vocabulary_module.MASK,
    },
    "KerasHub preprocessor.json": {"truncate": "round_robin"},
    "KerasHub tokenizer.json": {
        "split": True,
        "suffix_indicator": "##",
        "oov_token": vocabulary_module.UNK,
        "special_tokens_in_strings": False,
    },
}
# What a value in `EXPECTED` does, where the name of the setting does not say it.
_MEANINGS = {
    "tokenize_chinese_chars": "bert_tf treats every Chinese character as a word",
    "clean_text": "bert_tf deletes control characters",
    "do_basic_tokenize": "bert_tf splits text at punctuation",
    "split_special_tokens": "bert_tf keeps special tokens whole",
    "padding_side": "bert_tf pads on the right, so texts have other positions",
}
KNOWN = {
    file: frozenset([*keys.split(), *EXPECTED.get(file, ())])
    for file, keys in _KNOWN.items()
}


def unknown_names(file: str, values: Mapping[str, Any]) -> list[str]:
    """Returns the keys of a file that are not in the tables and have a value.

    Args:
        file: a key of `KNOWN`.
        values: the file's JSON object. Values such as null and false do not count.
    """
    return sorted(
        name for name, value in values.items() if value and name not in KNOWN[file]
    )


def unknown_keys(file: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yields a sentence about the unknown keys of a file, if it has some."""
    if names := unknown_names(file, values):
        yield (
            f"{file} has {', '.join(names)}, which bert_tf does not know and ignores; "
            "if it changes what the model computes, results differ."
        )


def report(file: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yields sentences about the settings of a file that may change answers."""
    yield from differences(file, values)
    yield from unknown_keys(file, values)


def differences(
    file: str, values: Mapping[str, Any], *, place: str | None = None
) -> Iterator[str]:
    """Yields a sentence about each setting that differs from the only value here.

    `place` names where the values are from, if not only from the file.
    """
    for name, expected in EXPECTED.get(file, {}).items():
        if (value := values.get(name, expected)) not in (None, expected):
            only = f"bert_tf supports only {json.dumps(expected)}"
            yield (
                f"{place or file} has {name} "
                f"{json.dumps(value, ensure_ascii=False):.60}; "
                f"{_MEANINGS.get(name, only)}. Texts may get different ids."
            )
