"""Raw text of any kind to one sentence per line, with blank lines between documents.

`workflow` runs two stages, both as independent tasks:

1. Reading. `sources` finds the input and groups it into units. `extraction` turns a
   unit into a part: `documents` reads the formats (`archives`, `lines`, `prose`,
   `json_lines`, `wikipedia` with `wikitext`, `datasets` with `wiki40b`), and `parts`
   writes sentences and tables of paragraphs and documents.
2. Writing. `plan` decides from the tables alone what goes into which file
   (`duplicates`, `minhash`, `smoothing`), and `shards` writes one file each.

`job_folder` keeps finished work so that a killed run can resume, and `report` describes
the result. Two stages through files mean that every worker, machine and retry produces
the same corpus.
"""
