"""Recordings: what came in to a development server, and its repetition in virtual time.

    recorder.py      writes down what comes in; watching.py stands between client and server
    tape.py          what the outside answered, recorded and played back
    start_state.py   what was durable when it began
    file.py          the file: appended, torn lines, full disks
    coding.py        bytes and stored values as JSON
    masking.py       secrets, masked and filled in again
    entries.py       what a recording consists of
    reading.py       reads one, and says what is wrong with it
    replay.py        repeats one; feeding.py has its clients, comparing.py says what differs
    as_test.py       prints it as a test; actions.py, literals.py, mocks.py, seeding.py,
                     holdings.py, stock.py

The server has the hooks (`Desk.recorder`, `Outbound.tape`), and imports this only for `--record`.
"""
