"""Keys of other libraries' JSON files that do not affect results.

The modules of the formats honour some keys and refuse others. A key that is neither
among those nor here may change answers, so it is reported when the checkpoint is
opened. docs/checkpoints.md has the whole table.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

# Of text generation, which transformers 4 wrote into every config.json.
_GENERATION = """
    bad_words_ids begin_suppress_tokens decoder_start_token_id diversity_penalty
    do_sample early_stopping encoder_no_repeat_ngram_size
    exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id
    length_penalty max_length min_length no_repeat_ngram_size num_beam_groups num_beams
    num_return_sequences output_scores prefix remove_invalid_values repetition_penalty
    return_dict_in_generate suppress_tokens task_specific_params temperature top_k top_p
    typical_p
"""
_CONFIG = """
    _attn_implementation _attn_implementation_autoset _commit_hash _name_or_path
    _num_labels attn_implementation bos_token_id chunk_size_feed_forward
    classifier_dropout cross_attention_hidden_size directionality dtype eos_token_id
    finetuning_task gradient_checkpointing is_encoder_decoder label2id output_attentions
    output_hidden_states output_past pad_token_id pooler_fc_size
    pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type
    return_dict sep_token_id tf_legacy_loss tie_encoder_decoder tokenizer_class
    torch_dtype torchscript transformers_version use_bfloat16 use_cache
"""
_TOKENIZER = """
    backend bos_token chat_template
    clean_up_tokenization_spaces cls_token_type_id eos_token
    is_local local_files_only max_length model_specific_special_tokens name_or_path
    pad_to_multiple_of pad_token_type_id processor_class special_tokens_map_file stride
    tokenizer_file
    truncation_strategy use_fast vocab_file
"""
_KERAS = "class_name config_file dtype module name registered_name trainable"
# File -> its keys without effect.
WITHOUT_EFFECT = {
    "config.json": _CONFIG + _GENERATION,
    "tokenizer_config.json": _TOKENIZER,
    "tokenizer.json": "decoder padding version",
    "1_Pooling/config.json": "",
    "config_sentence_transformers.json": "__version__",
    "KerasHub config.json": _KERAS,
    "KerasHub task.json": f"{_KERAS} dropout",
    "KerasHub preprocessor.json": f"""
        {_KERAS} tokenizer mask_selection_length mask_selection_rate mask_token_rate
        random_token_rate
    """,
    "KerasHub tokenizer.json": f"{_KERAS} sequence_length",
}
# File -> the keys that its format honours or refuses.
READ = {
    "config.json": """
        add_cross_attention architectures attention_probs_dropout_prob auto_map
        hidden_act hidden_dropout_prob hidden_size id2label initializer_range
        intermediate_size is_decoder layer_norm_eps max_position_embeddings model_type
        num_attention_heads num_hidden_layers num_labels position_embedding_type
        problem_type pruned_heads quantization_config
        sbert_ce_default_activation_function sentence_transformers tie_word_embeddings
        type_vocab_size vocab_size
    """,
    "tokenizer_config.json": """
        added_tokens_decoder additional_special_tokens auto_map clean_text cls_token
        do_basic_tokenize do_lower_case extra_special_tokens mask_token max_len
        model_input_names model_max_length never_split pad_token padding_side sep_token
        split_special_tokens strip_accents tokenize_chinese_chars tokenizer_class
        truncation_side unk_token
    """,
    "tokenizer.json": (
        "added_tokens model normalizer post_processor pre_tokenizer truncation"
    ),
    "1_Pooling/config.json": """
        embedding_dimension include_prompt pooling_mode pooling_mode_cls_token
        pooling_mode_lasttoken pooling_mode_max_tokens pooling_mode_mean_sqrt_len_tokens
        pooling_mode_mean_tokens pooling_mode_weightedmean_tokens
        word_embedding_dimension
    """,
    "config_sentence_transformers.json": """
        activation_fn default_prompt_name model_type prompts similarity_fn_name
    """,
    "KerasHub config.json": """
        config dropout hidden_dim intermediate_dim max_sequence_length num_heads
        num_layers num_segments vocabulary_size
    """,
    "KerasHub task.json": """
        activation backbone config normalize num_classes pooling_mode preprocessor
    """,
    "KerasHub preprocessor.json": "sequence_length truncate",
    "KerasHub tokenizer.json": """
        config lowercase oov_token special_tokens special_tokens_in_strings split
        strip_accents suffix_indicator vocabulary
    """,
}


def unknown_names(file: str, values: Mapping[str, Any]) -> list[str]:
    """Returns the keys of a file that are not in the table and have a value."""
    known = {*READ[file].split(), *WITHOUT_EFFECT[file].split()}
    return sorted(key for key, value in values.items() if value and key not in known)


def unknown(file: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yields a sentence about the keys of a file that are not in the table.

    Args:
        file: a key of `READ`.
        values: the file's JSON object. Keys without a value, such as null or false,
            are not reported.
    """
    if names := unknown_names(file, values):
        yield (
            f"{file} has {', '.join(names)}, which bert_tf does not know and ignores; "
            "if it changes what the model computes, results differ."
        )
