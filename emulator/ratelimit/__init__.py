"""The rate limiting binding: how often a key was seen in a period.

counts.py    the counts (pure)
options.py   what the runtime makes of a call's options
bindings.py  what user code has: `limit`
service.py   the counts of one emulator, and what lasts
"""
