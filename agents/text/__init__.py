"""Names, JSON and one-line texts, as all of the agents' modules write them."""
