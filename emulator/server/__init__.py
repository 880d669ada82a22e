"""The development server: an emulator on the machine's clock, behind HTTP.

    desk.py          the running emulator, through reloads; what control pages are written against
    feed.py          events as they happen
    options.py       what is to run
    problem.py       why it cannot
    gateway.py       requests from the network to Workers, and answers back, with request_body.py
    asked.py         what a request says of itself
    sockets.py       WebSocket connections
    failures.py      what a client gets where no Worker answers; pages.py
    routing.py       which Worker a request is for
    control.py       the pages under `/cdn-cgi/`, and the place where others are added
    bodies.py        the JSON that is sent to them
    triggers.py      `/cdn-cgi/handler/scheduled`, `/cdn-cgi/handler/email`
    status.py        `/cdn-cgi/emulator/status`, `clock` and `events`
    faults.py        `/cdn-cgi/emulator/faults`
    arming.py        faults armed in a running server, and why some are refused
    guard.py         who may use them
    application.py   all of this as one ASGI application
    connections.py   HTTP connections, as uvicorn serves them
    direct.py        requests that need no task of their own
    unframed.py      answers to HTTP/1.0
    serving.py       the process: socket, signals, the end
    spinning.py      what holds it up: a Worker that spins, SQL
    state_folder.py  where what is durable lies
    watched.py       which files matter, and how they were
    reloading.py     files that change

Only the command line and `emulator.recording` import this package, and nothing
else imports starlette, uvicorn and watchfiles.
"""
