"""Learning-rate schedules and optimizers, as the release defined them."""
