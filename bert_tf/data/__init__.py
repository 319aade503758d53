"""Text files, TFRecord files and tables: reading, writing, batching and checking.

- Text: `corpus` and its shards, `tables`, `squad_json`.
- Records: `schema` (columns), `encoding` (bytes), `tfrecord`,
  `record_index` and `record_checks` (files).
- Batches: `packing` and `graph_packing` (pieces to rows), `ordering`, `batching`.
- Checks of data before training: `text_checks`.
- `parallel`: independent tasks in worker processes or on Apache Beam.
"""
