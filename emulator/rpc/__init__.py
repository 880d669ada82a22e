"""Calls from one entrypoint to another: of a Durable Object, or of another Worker.

    stub.py      what the caller has: `Fetcher`, whose every name is a method, and `RpcStub`
    target.py    where a call goes: the protocol that an object or a Worker's entrypoint implements
    entry.py     the receiving side: which method a name is, and how it is called
    carriage.py  arguments and results on their way: copies, stubs, bodies, and what cannot cross
    errors.py    exceptions on their way
    bodies.py    bodies of requests and responses that one side makes and the other reads

Nothing here knows what is called: a product implements `Target` and hands out `Fetcher`s.
"""
