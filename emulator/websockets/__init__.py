"""WebSocket connections: what lies between their two ends, and the test as a client.

The JavaScript classes are in `emulator/runtime/web/websocket.py`; sockets that a Durable Object
holds while it is not in memory in `emulator/objects/sockets.py`.
"""
