"""The released models by name: `models` lists them, `fetching` provides their folders.

`downloading` gets a file over HTTP, `unpacking` turns a released zip into a folder.
`hub_names` provides models on Hugging Face's hub.
"""
