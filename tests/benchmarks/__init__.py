"""Figures, not tests: nothing here fails by the clock. `make bench` prints them."""
