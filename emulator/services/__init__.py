"""Service bindings: one Worker calls another, or itself, by requests and by methods.

    bindings.py  what `env` and `ctx.exports` have: stubs
    target.py    where their calls go, through the faults on the way
    event.py     one call in the Worker that is called: its invocation
    service.py   which Workers there are, and who binds to them

How arguments, results and errors cross is `emulator/rpc`'s.
"""
