"""Mail: what Workers send, and what they are sent.

message.py   what a mail is, for a test
reading.py   what the service makes of what user code gives, and what it refuses
bindings.py  what user code has: `send`, and `EmailMessage` of `cloudflare:email`
service.py   the mail of one emulator, and what lasts
incoming.py  an `email` handler's run
"""
