"""Models by name: `models` lists the released ones, `fetching` provides their folders.

`downloading` gets a file over HTTP, `hub_names` models from Hugging Face's hub.
"""
