"""Raw text of any kind -> one sentence a line, a blank line between documents.

Read in this order: options, sources, archives, lines, prose, json_lines, wikitext,
wikipedia, datasets, documents, counts; then parts, minhash, extraction; then
duplicates, smoothing, plan, text_statistics, shards, report; job_folder, workflow.
"""
