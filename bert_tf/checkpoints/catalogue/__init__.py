"""Models by name: `fetching` provides the released ones, `hub_names` Hugging Face's."""
