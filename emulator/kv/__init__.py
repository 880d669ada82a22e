"""Workers KV: keys with values, metadata and an expiration, behind a binding.

store.py      a namespace: what was written, and what was there before (pure)
rules.py      what the service refuses, and in which words (pure)
arguments.py  what the runtime makes of a call's arguments
bindings.py   what user code sees: `KvNamespace`
service.py    the namespaces of one emulator
control.py    a namespace in a test's hand
"""
