"""The Cache API's service: responses by URL, for as long as their headers say.

rules.py     what is stored, and for how long (pure)
answers.py   what a request with conditions or ranges gets of an entry (pure)
store.py     a cache: its entries (pure)
service.py   the caches of one emulator
control.py   a cache in a test's hand

What user code sees is in emulator/runtime/web/caches.py.
"""
