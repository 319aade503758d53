"""Raw text of any kind to one sentence per line, with blank lines between documents.

`inputs` finds files and data sets and groups them into units. `extraction` writes the
sentences of each unit as a part, in parallel: `documents` knows the formats (with
`reading`, `prose` and `wikitext`). `workflow` then copies the parts into the output
files without repeated paragraphs. `job_folder` keeps finished parts so that a killed
run can resume.
"""
