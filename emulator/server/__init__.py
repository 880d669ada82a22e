"""The development server: an emulator on the machine's clock, behind HTTP.

    desk.py         the running emulator, through reloads; what control pages are written against
    gateway.py      requests from the network to Workers, and answers back
    sockets.py      WebSocket connections
    routing.py      which Worker a request is for
    control.py      the pages under `/cdn-cgi/`, and the place where others are added
    guard.py        who may use them
    application.py  all of this as one ASGI application
    serving.py      the process: socket, signals, the end

Only the command line imports this package (`emulator.cli.dev` and what goes with it), and nothing
else imports starlette, uvicorn and watchfiles.
"""
