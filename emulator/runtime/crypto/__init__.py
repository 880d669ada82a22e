"""`crypto` of the `js` module (workerd, `api/crypto`; texts: workerd 1.20261117.1).

An algorithm is a class of `Algorithm` that says how its keys are made and what they do; `subtle.py`
finds it by name and checks what all have in common. Digests, HMAC, PBKDF2 and HKDF need only the
standard library; `cryptography` is imported when the first key of another algorithm is made.

Random bytes come from the emulator's seeded stream wherever the library lets them: keys of every
kind; signatures with ECDSA are deterministic (RFC 6979). Salts of RSA-PSS and the padding of
RSA-OAEP are the library's own.
"""
