"""The tools by the names that people type: `bert_tf classify` is `run_classifier`.

One table serves `bert_tf --help`, the lookup of a subcommand, and the examples at the
top of each tool's `--help`. It imports nothing, so all of them are fast.
"""

import dataclasses
import difflib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subcommand:
    """A tool, its short name, and its entry in the help texts."""

    name: str  # As typed after `bert_tf`.
    tool: str  # The name of the tool, which is also a separate command.
    stage: str  # Heading in `bert_tf --help`.
    summary: str  # One line in `bert_tf --help`.
    examples: tuple[str, ...]  # Flags of one complete command each.


SUBCOMMANDS = (
    Subcommand(
        name="demo",
        tool="run_demo",
        stage="Start here",
        summary="Run every stage on sample text, in minutes on a CPU",
        examples=("--output_dir=demo_run", "--corpus_file=my_text.txt"),
    ),
    Subcommand(
        name="prepare",
        tool="prepare_corpus",
        stage="Prepare data",
        summary="Turn raw text into one sentence per line",
        examples=(
            "--input_file=novels/ --output_dir=corpus",
            "--input_file=enwiki-latest-pages-articles.xml.bz2 --output_dir=corpus "
            "--num_workers=8",
        ),
    ),
    Subcommand(
        name="vocabulary",
        tool="build_vocabulary",
        stage="Prepare data",
        summary="Learn a WordPiece vocabulary, or add words to one",
        examples=(
            "--input_file='corpus/*.txt' --vocab_file=vocab.txt --vocab_size=30522",
            "--vocab_file=vocab.txt --fill_unused=new_words.txt "
            "--output_file=vocab_extended.txt",
        ),
    ),
    Subcommand(
        name="create-data",
        tool="create_pretraining_data",
        stage="Prepare data",
        summary="Turn sentences into masked pretraining examples (TFRecord)",
        examples=(
            "--input_file='corpus/*.txt' --output_file=train.tfrecord "
            "--vocab_file=vocab.txt",
            "--input_file='corpus/*.txt' --output_file=unmasked.tfrecord "
            "--vocab_file=vocab.txt --dynamic_masking --packed_rows",
        ),
    ),
    Subcommand(
        name="triviaqa",
        tool="convert_triviaqa",
        stage="Prepare data",
        summary="Convert TriviaQA into the format of SQuAD",
        examples=(
            "--qa_file=triviaqa-rc/qa/wikipedia-train.json "
            "--evidence_dir=triviaqa-rc/evidence/wikipedia "
            "--output_file=triviaqa.json",
        ),
    ),
    Subcommand(
        name="check",
        tool="check_data",
        stage="Prepare data",
        summary="Check the data of a task before training",
        examples=(
            "--task=classification --task_name=MRPC --data_dir=glue/MRPC "
            "--init_checkpoint=bert-base-uncased",
        ),
    ),
    Subcommand(
        name="pretrain",
        tool="run_pretraining",
        stage="Pretrain",
        summary="Pretrain BERT, or continue pretraining a checkpoint",
        examples=(
            "--input_file=train.tfrecord --eval_input_file=heldout.tfrecord "
            "--model_size=base --output_dir=runs/base --do_train --do_eval",
            "--input_file=domain.tfrecord --init_checkpoint=bert-base-uncased "
            "--output_dir=runs/domain --do_train --learning_rate=2e-5 "
            "--num_train_steps=10000 --num_warmup_steps=1000",
        ),
    ),
    Subcommand(
        name="fill-mask",
        tool="fill_mask",
        stage="Pretrain",
        summary="Predict the words behind [MASK], or score whole texts",
        examples=(
            "--init_checkpoint=bert-base-uncased "
            "--text='Stir the [MASK] until the butter melts.'",
        ),
    ),
    Subcommand(
        name="plot",
        tool="plot_run",
        stage="Pretrain",
        summary="Plot the losses and scores of training runs",
        examples=("--run_dir=runs/base", "--run_dir=runs/a,runs/b --plot_file=ab.png"),
    ),
    Subcommand(
        name="classify",
        tool="run_classifier",
        stage="Fine-tune and predict",
        summary="Classify texts or pairs of texts (GLUE, XNLI, your own tables)",
        examples=(
            "--task_name=MRPC --data_dir=glue/MRPC "
            "--init_checkpoint=bert-base-uncased --output_dir=runs/mrpc "
            "--do_train --do_eval",
            "--train_file=train.csv --eval_file=dev.csv --text_column=review "
            "--label_column=stars --init_checkpoint=bert-base-uncased "
            "--output_dir=runs/reviews --do_train --do_eval",
            "--predict_file=new.csv --output_dir=runs/reviews --do_predict",
        ),
    ),
    Subcommand(
        name="answer",
        tool="run_squad",
        stage="Fine-tune and predict",
        summary="Find answers to questions in a text (SQuAD)",
        examples=(
            "--train_file=train-v1.1.json --predict_file=dev-v1.1.json "
            "--init_checkpoint=bert-base-uncased --output_dir=runs/squad "
            "--do_train --do_predict --do_eval",
        ),
    ),
    Subcommand(
        name="tag",
        tool="run_ner",
        stage="Fine-tune and predict",
        summary="Tag words: named entities, parts of speech",
        examples=(
            "--data_dir=conll2003 --init_checkpoint=bert-base-cased "
            "--do_lower_case=False --output_dir=runs/ner --do_train --do_eval",
            "--predict_file=sentences.txt --do_lower_case=False "
            "--output_dir=runs/ner --do_predict",
        ),
    ),
    Subcommand(
        name="choose",
        tool="run_swag",
        stage="Fine-tune and predict",
        summary="Choose one of several endings (SWAG, CODAH)",
        examples=(
            "--data_dir=swag --init_checkpoint=bert-base-uncased "
            "--output_dir=runs/swag --do_train --do_eval",
        ),
    ),
    Subcommand(
        name="retrieve",
        tool="run_retrieval",
        stage="Fine-tune and predict",
        summary="Find the passages that answer a query",
        examples=(
            "--train_file=train.jsonl --eval_file=dev.jsonl "
            "--corpus_file=passages.txt --init_checkpoint=bert-base-uncased "
            "--output_dir=runs/passages --do_train --do_eval",
            "--model=cross_encoder --train_file=train.jsonl --eval_file=dev.jsonl "
            "--corpus_file=passages.txt --retrieve_with=runs/passages "
            "--init_checkpoint=bert-base-uncased --output_dir=runs/ranking "
            "--do_train --do_eval",
        ),
    ),
    Subcommand(
        name="embed",
        tool="extract_features",
        stage="Fine-tune and predict",
        summary="Write the vectors of word pieces or of whole texts",
        examples=(
            "--input_file=lines.txt --output_file=vectors.jsonl "
            "--init_checkpoint=bert-base-uncased",
            "--input_file=lines.txt --output_file=vectors.npz "
            "--init_checkpoint=bert-base-uncased --output_format=npz --layers=-1 "
            "--pooling=mean --normalize",
        ),
    ),
    Subcommand(
        name="evaluate-glue",
        tool="evaluate_glue",
        stage="Evaluate",
        summary="Collect GLUE scores in one table, with the paper's average",
        examples=("--input_dir=runs --data_dir=glue",),
    ),
    Subcommand(
        name="evaluate-squad",
        tool="evaluate_squad",
        stage="Evaluate",
        summary="Score predictions as SQuAD's official scripts do",
        examples=(
            "--data_file=dev-v2.0.json --predictions_file=runs/squad/predictions.json "
            "--null_odds_file=runs/squad/null_odds.json "
            "--nbest_file=runs/squad/nbest_predictions.json",
        ),
    ),
    Subcommand(
        name="convert",
        tool="convert_checkpoint",
        stage="Share and serve",
        summary="Convert a checkpoint between formats and verify the result",
        examples=(
            "--source=runs/base --target=hugging_face_model "
            "--target_format=hugging_face",
            "--source=bert-base-uncased --target=uncased_L-12_H-768_A-12 "
            "--target_format=bert",
        ),
    ),
    Subcommand(
        name="export",
        tool="export_saved_model",
        stage="Share and serve",
        summary="Export a model as a SavedModel: text in, answers out",
        examples=(
            "--output_dir=runs/mrpc --export_dir=models/mrpc/1",
            "--init_checkpoint=bert-base-uncased --pooling=mean "
            "--export_dir=models/vectors/1",
        ),
    ),
    Subcommand(
        name="query",
        tool="query_saved_model",
        stage="Share and serve",
        summary="Query an exported model, on disk or on a server",
        examples=(
            "--export_dir=models/topics/1 "
            "--text='Plant the bulbs before the first frost.'",
            "--server=http://localhost:8501/v1/models/rivers "
            "--question='Where does it rise?' --context='It rises near Oslo.'",
        ),
    ),
    Subcommand(
        name="serve",
        tool="serve_model",
        stage="Share and serve",
        summary="Serve an exported model over HTTP, without Docker",
        examples=("--export_dir=models/topics --port=8501",),
    ),
)


def find(name: str) -> Subcommand | None:
    """Returns the subcommand of a short name or of a tool's name, or None.

    Hyphens and underscores are interchangeable.
    """
    name = name.replace("-", "_")
    for subcommand in SUBCOMMANDS:
        if name in (subcommand.tool, subcommand.name.replace("-", "_")):
            return subcommand
    return None


def nearest_name(name: str) -> str | None:
    """Returns the known name that is most similar to a mistyped one, or None."""
    known = [name for s in SUBCOMMANDS for name in (s.name, s.tool)]
    nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return nearest[0] if nearest else None
