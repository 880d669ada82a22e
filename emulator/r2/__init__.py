"""R2: buckets of objects behind a binding.

store.py       a bucket: its objects, and the uploads that are not complete (pure)
events.py      event notification rules, and what a message says (pure)
conditions.py  `onlyIf`: what has to hold of an object (pure)
ranges.py      which bytes of an object are asked for (pure)
rules.py       what the service refuses, and in which words (pure)
options.py     how the runtime reads options objects
arguments.py   what the runtime makes of a call's arguments
writes.py      what a `put` makes of a body
results.py     what user code gets: `HeadResult`, `GetResult`, `Checksums`
bindings.py    what user code sees: `R2Bucket`
multipart.py   what user code sees: `R2MultipartUpload`
calls.py       the way of a call to the service
bodies.py      where what is large is kept
service.py     the buckets of one emulator
control.py     a bucket in a test's hand
"""
