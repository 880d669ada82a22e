"""`HTMLRewriter` of the `js` module (workerd, `api/html-rewriter.c++`).

`tokens.py` cuts a document with the standard library's HTML parser, `selectors.py` matches elements
as they open, `content.py` has what handlers get, and `rewriter.py` puts the document together
again. What no handler touches comes out byte by byte as it was. Texts are workerd 1.20261117.1's.
"""
