"""Cloudflare Workflows: the engine, and what Worker code and tests see of it.

The engine is pure, from `model`, `texts`, `grammar` and `retries` at the bottom by way of the
durable `state` to the verbs in `engine`.
"""
