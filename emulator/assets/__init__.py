"""Static assets: files that are served before the Worker, and to it.

content_types.py  the types of files by their names (pure)
paths.py          paths of URLs, decoded and encoded (pure)
html.py           which file a path means, and where it leads (pure)
rule_files.py     `_headers` and `_redirects` (pure)
matching.py       which rules a request matches (pure)
files.py          the files of a folder
answers.py        what a request gets (pure, but for the files)
service.py        the assets of one emulator: before a Worker, and behind its binding
"""
