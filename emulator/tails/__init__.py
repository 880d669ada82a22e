"""Tail Workers: Workers that are told of what happened in others (docs/tail.md)."""
