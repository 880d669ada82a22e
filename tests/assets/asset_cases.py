"""Which file a path means: the cases of Cloudflare's own tests of the asset Worker.

From workers-sdk, fixtures/workers-shared-asset-config. By mode and by the files there are: the
path that is asked for, the file that is served in the end, and the path at which it is; None where
nothing is.
"""

from __future__ import annotations

from typing import Final

CASES: Final[dict[str, list[tuple[list[str], list[tuple[str, str | None, str | None]]]]]] = {
    "auto-trailing-slash": [
        (
            ["/index.html"],
            [
                ("/index.html", "/index.html", "/"),
                ("/index", "/index.html", "/"),
            ],
        ),
        (
            ["/both.html", "/both/index.html"],
            [
                ("/both", "/both.html", "/both"),
                ("/both.html", "/both.html", "/both"),
                ("/both/", "/both/index.html", "/both/"),
                ("/both/index.html", "/both/index.html", "/both/"),
                ("/both/index", "/both/index.html", "/both/"),
            ],
        ),
        (
            ["/file.html"],
            [
                ("/file", "/file.html", "/file"),
                ("/file.html", "/file.html", "/file"),
                ("/file/", "/file.html", "/file"),
                ("/file/index", "/file.html", "/file"),
                ("/file/index.html", "/file.html", "/file"),
            ],
        ),
        (
            ["/folder/index.html"],
            [
                ("/folder", "/folder/index.html", "/folder/"),
                ("/folder.html", "/folder/index.html", "/folder/"),
                ("/folder/", "/folder/index.html", "/folder/"),
                ("/folder/index", "/folder/index.html", "/folder/"),
                ("/folder/index.html", "/folder/index.html", "/folder/"),
            ],
        ),
        (
            ["/bin%2F", "/bin/index.html"],
            [
                ("/bin", "/bin/index.html", "/bin/"),
                ("/bin.html", "/bin/index.html", "/bin/"),
                ("/bin%2F", "/bin/index.html", "/bin/"),
                ("/bin%252F", "/bin%2F", "/bin%252F"),
                ("/bin/", "/bin/index.html", "/bin/"),
                ("/bin/index", "/bin/index.html", "/bin/"),
                ("/bin/index.html", "/bin/index.html", "/bin/"),
            ],
        ),
        (
            ["/file-bin", "/file-bin.html"],
            [
                ("/file-bin", "/file-bin", "/file-bin"),
                ("/file-bin.html", "/file-bin.html", "/file-bin.html"),
                ("/file-bin/", None, None),
                ("/file-bin/index", None, None),
                ("/file-bin/index.html", None, None),
            ],
        ),
        (
            ["/[boop].html"],
            [
                ("/[boop]", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D/", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop]/", "/[boop].html", "/%5Bboop%5D"),
            ],
        ),
        (
            ["/[boop].html", "/[boop]/index.html"],
            [
                ("/[boop]", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop]/", "/[boop]/index.html", "/%5Bboop%5D/"),
                ("/%5Bboop%5D/", "/[boop]/index.html", "/%5Bboop%5D/"),
                ("/[boop]/index.html", "/[boop]/index.html", "/%5Bboop%5D/"),
                ("/%5Bboop%5D/index.html", "/[boop]/index.html", "/%5Bboop%5D/"),
            ],
        ),
        (
            ["/beep/[bòop].html"],
            [
                ("/beep/[b%C3%B2op]", "/beep/[bòop].html", "/beep/%5Bb%C3%B2op%5D"),
            ],
        ),
        (
            ["/%5Bboop%5D.html", "/[boop].html"],
            [
                ("/[boop]", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D"),
                ("/%255Bboop%255D", "/%5Bboop%5D.html", "/%255Bboop%255D"),
                ("/%255Bboop%255D.html", "/%5Bboop%5D.html", "/%255Bboop%255D"),
            ],
        ),
        (
            ["/beep?boop.html"],
            [
                ("/beep?boop", None, None),
                ("/beep%3Fboop", "/beep?boop.html", "/beep%3Fboop"),
                ("/beep%3Fboop/", "/beep?boop.html", "/beep%3Fboop"),
            ],
        ),
    ],
    "drop-trailing-slash": [
        (
            ["/index.html"],
            [
                ("/index.html", "/index.html", "/"),
                ("/index", "/index.html", "/"),
            ],
        ),
        (
            ["/both.html", "/both/index.html"],
            [
                ("/both", "/both.html", "/both"),
                ("/both.html", "/both.html", "/both"),
                ("/both/", "/both.html", "/both"),
                ("/both/index", "/both.html", "/both"),
                ("/both/index.html", "/both/index.html", "/both/index.html"),
            ],
        ),
        (
            ["/file.html"],
            [
                ("/file", "/file.html", "/file"),
                ("/file.html", "/file.html", "/file"),
                ("/file/", "/file.html", "/file"),
                ("/file/index", "/file.html", "/file"),
                ("/file/index.html", "/file.html", "/file"),
            ],
        ),
        (
            ["/folder/index.html"],
            [
                ("/folder", "/folder/index.html", "/folder"),
                ("/folder.html", "/folder/index.html", "/folder"),
                ("/folder/", "/folder/index.html", "/folder"),
                ("/folder/index", "/folder/index.html", "/folder"),
                ("/folder/index.html", "/folder/index.html", "/folder"),
            ],
        ),
        (
            ["/bin%2F", "/bin/index.html"],
            [
                ("/bin", "/bin/index.html", "/bin"),
                ("/bin.html", "/bin/index.html", "/bin"),
                ("/bin%2F", "/bin/index.html", "/bin"),
                ("/bin%252F", "/bin%2F", "/bin%252F"),
                ("/bin/", "/bin/index.html", "/bin"),
                ("/bin/index", "/bin/index.html", "/bin"),
                ("/bin/index.html", "/bin/index.html", "/bin"),
            ],
        ),
        (
            ["/file-bin", "/file-bin.html"],
            [
                ("/file-bin", "/file-bin", "/file-bin"),
                ("/file-bin.html", "/file-bin.html", "/file-bin.html"),
                ("/file-bin/", None, None),
                ("/file-bin/index", None, None),
                ("/file-bin/index.html", None, None),
            ],
        ),
        (
            ["/[boop].html"],
            [
                ("/[boop]", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D/", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop]/", "/[boop].html", "/%5Bboop%5D"),
            ],
        ),
        (
            ["/[boop].html", "/[boop]/index.html"],
            [
                ("/[boop]", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop]/", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D/", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop]/index.html", "/[boop]/index.html", "/%5Bboop%5D/index.html"),
                ("/%5Bboop%5D/index.html", "/[boop]/index.html", "/%5Bboop%5D/index.html"),
            ],
        ),
        (
            ["/beep/[bòop].html"],
            [
                ("/beep/[b%C3%B2op]", "/beep/[bòop].html", "/beep/%5Bb%C3%B2op%5D"),
            ],
        ),
        (
            ["/%5Bboop%5D.html", "/[boop].html"],
            [
                ("/[boop]", "/[boop].html", "/%5Bboop%5D"),
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D", "/[boop].html", "/%5Bboop%5D"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D"),
                ("/%255Bboop%255D", "/%5Bboop%5D.html", "/%255Bboop%255D"),
                ("/%255Bboop%255D.html", "/%5Bboop%5D.html", "/%255Bboop%255D"),
            ],
        ),
        (
            ["/beep?boop.html"],
            [
                ("/beep?boop", None, None),
                ("/beep%3Fboop", "/beep?boop.html", "/beep%3Fboop"),
                ("/beep%3Fboop/", "/beep?boop.html", "/beep%3Fboop"),
            ],
        ),
    ],
    "force-trailing-slash": [
        (
            ["/index.html"],
            [
                ("/index.html", "/index.html", "/"),
                ("/index", "/index.html", "/"),
            ],
        ),
        (
            ["/both.html", "/both/index.html"],
            [
                ("/both", "/both/index.html", "/both/"),
                ("/both.html", "/both.html", "/both.html"),
                ("/both/", "/both/index.html", "/both/"),
                ("/both/index", "/both/index.html", "/both/"),
                ("/both/index.html", "/both/index.html", "/both/"),
            ],
        ),
        (
            ["/file.html"],
            [
                ("/file", "/file.html", "/file/"),
                ("/file.html", "/file.html", "/file/"),
                ("/file/", "/file.html", "/file/"),
                ("/file/index", "/file.html", "/file/"),
                ("/file/index.html", "/file.html", "/file/"),
            ],
        ),
        (
            ["/folder/index.html"],
            [
                ("/folder", "/folder/index.html", "/folder/"),
                ("/folder.html", "/folder/index.html", "/folder/"),
                ("/folder/", "/folder/index.html", "/folder/"),
                ("/folder/index", "/folder/index.html", "/folder/"),
                ("/folder/index.html", "/folder/index.html", "/folder/"),
            ],
        ),
        (
            ["/bin%2F", "/bin/index.html"],
            [
                ("/bin", "/bin/index.html", "/bin/"),
                ("/bin.html", "/bin/index.html", "/bin/"),
                ("/bin%2F", "/bin/index.html", "/bin/"),
                ("/bin%252F", "/bin%2F", "/bin%252F"),
                ("/bin/", "/bin/index.html", "/bin/"),
                ("/bin/index", "/bin/index.html", "/bin/"),
                ("/bin/index.html", "/bin/index.html", "/bin/"),
            ],
        ),
        (
            ["/file-bin", "/file-bin.html"],
            [
                ("/file-bin", "/file-bin", "/file-bin"),
                ("/file-bin.html", "/file-bin.html", "/file-bin/"),
                ("/file-bin/", "/file-bin.html", "/file-bin/"),
                ("/file-bin/index", "/file-bin.html", "/file-bin/"),
                ("/file-bin/index.html", "/file-bin.html", "/file-bin/"),
            ],
        ),
        (
            ["/[boop].html"],
            [
                ("/%5Bboop%5D/", "/[boop].html", "/%5Bboop%5D/"),
                ("/[boop]/", "/[boop].html", "/%5Bboop%5D/"),
            ],
        ),
        (
            ["/[boop].html", "/[boop]/index.html"],
            [
                ("/[boop]", "/[boop]/index.html", "/%5Bboop%5D/"),
                ("/%5Bboop%5D", "/[boop]/index.html", "/%5Bboop%5D/"),
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D.html"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D.html"),
                ("/[boop]/", "/[boop]/index.html", "/%5Bboop%5D/"),
                ("/%5Bboop%5D/", "/[boop]/index.html", "/%5Bboop%5D/"),
                ("/[boop]/index.html", "/[boop]/index.html", "/%5Bboop%5D/"),
                ("/%5Bboop%5D/index.html", "/[boop]/index.html", "/%5Bboop%5D/"),
            ],
        ),
        (
            ["/beep/[bòop].html"],
            [
                ("/beep/[b%C3%B2op]/", "/beep/[bòop].html", "/beep/%5Bb%C3%B2op%5D/"),
            ],
        ),
        (
            ["/%5Bboop%5D.html", "/[boop].html"],
            [
                ("/[boop]", "/[boop].html", "/%5Bboop%5D/"),
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D/"),
                ("/%5Bboop%5D", "/[boop].html", "/%5Bboop%5D/"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D/"),
                ("/%255Bboop%255D", "/%5Bboop%5D.html", "/%255Bboop%255D/"),
                ("/%255Bboop%255D.html", "/%5Bboop%5D.html", "/%255Bboop%255D/"),
            ],
        ),
        (
            ["/beep?boop.html"],
            [
                ("/beep?boop/", None, None),
                ("/beep%3Fboop", "/beep?boop.html", "/beep%3Fboop/"),
                ("/beep%3Fboop/", "/beep?boop.html", "/beep%3Fboop/"),
            ],
        ),
    ],
    "none": [
        (
            ["/index.html"],
            [
                ("/", None, None),
                ("/index", None, None),
                ("/index.html", "/index.html", "/index.html"),
            ],
        ),
        (
            ["/both.html", "/both/index.html"],
            [
                ("/both", None, None),
                ("/both.html", "/both.html", "/both.html"),
                ("/both/", None, None),
                ("/both/index.html", "/both/index.html", "/both/index.html"),
            ],
        ),
        (
            ["/file.html"],
            [
                ("/file/index.html", None, None),
            ],
        ),
        (
            ["/folder/index.html"],
            [
                ("/folder.html", None, None),
            ],
        ),
        (
            ["/bin%2F", "/bin/index.html"],
            [
                ("/bin", None, None),
                ("/bin.html", None, None),
                ("/bin%2F", None, None),
                ("/bin%252F", "/bin%2F", "/bin%252F"),
                ("/bin/", None, None),
                ("/bin/index", None, None),
            ],
        ),
        (
            ["/file-bin", "/file-bin.html"],
            [
                ("/file-bin", "/file-bin", "/file-bin"),
                ("/file-bin.html", "/file-bin.html", "/file-bin.html"),
                ("/file-bin/", None, None),
                ("/file-bin/index", None, None),
                ("/file-bin/index.html", None, None),
            ],
        ),
        (
            ["/[boop].html"],
            [
                ("/[boop]", None, None),
                ("/%5Bboop%5D", None, None),
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D.html"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D.html"),
            ],
        ),
        (
            ["/beep/[bòop].html"],
            [
                ("/beep/[b%C3%B2op].html", "/beep/[bòop].html", "/beep/%5Bb%C3%B2op%5D.html"),
            ],
        ),
        (
            ["/%5Bboop%5D.html", "/[boop].html"],
            [
                ("/[boop].html", "/[boop].html", "/%5Bboop%5D.html"),
                ("/%5Bboop%5D.html", "/[boop].html", "/%5Bboop%5D.html"),
                ("/[boop]", None, None),
                ("/%5Bboop%5D", None, None),
                ("/%255Bboop%255D.html", "/%5Bboop%5D.html", "/%255Bboop%255D.html"),
                ("/%255Bboop%255D", None, None),
            ],
        ),
        (
            ["/beep?boop.html"],
            [
                ("/beep?boop/", None, None),
                ("/beep%3Fboop.html", "/beep?boop.html", "/beep%3Fboop.html"),
                ("/beep%3Fboop", None, None),
            ],
        ),
    ],
}
