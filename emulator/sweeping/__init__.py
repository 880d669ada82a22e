"""The fault sweep: a scenario is run once clean and once under each fault that can strike it."""
