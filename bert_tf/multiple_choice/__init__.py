"""A start and several endings, of which one goes on best: SWAG and own tables."""
