"""Masking: secrets never leave the emulator in a text it writes.

A `Masker` knows the values of `.dev.vars`, `.env` and secrets by name. In every text that leaves
(trace, logs, reports, recordings) it writes `[secret NAME]` for

1. each value, wherever it stands; where values overlap, all they cover together;
2. the value in every encoding in which a client may send it: percent-encoded (of a URL, or of a
   form, with `+` for spaces), escaped as in JSON, Python or HTML, whichever of its characters are,
   in any case, and encodings in encodings up to four deep (`emulator.encodings`): compared is what
   a text says, not how it is written;
3. the value base64-encoded, also in the middle of a longer base64 text, from 8 bytes on, since less
   would also match text that has nothing to do with it; after `Basic` whatever its length. In lower
   case too, from 8 characters on, where it may have been the name of a header;
4. each line of 16 characters or more of a value with several lines (a private key);
5. the value of `Authorization`, `Proxy-Authorization`, `Cookie` and `Set-Cookie`, whatever it is,
   in headers and where a text looks like such a header;
6. from 8 characters on, such values that were met in requests and answers, wherever they stand, and
   what they hold without its scheme or name: the token, each cookie's value; encoded as in 2.

A scheme with a token that is a value by itself keeps its form in a text: `Bearer [secret NAME]`.

Left alone are values shorter than 4 characters and the words `true`, `false`, `null`, `none` and
`undefined`: they protect nothing, and masking them would make every text unreadable. Not found are
values that the Worker changed in other ways (hashed, compressed, cut in two).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from emulator.encodings import Parts, encoded, readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SHORTEST: Final = 4
_SHORTEST_BASE64: Final = 8
_SHORTEST_LINE: Final = 16
_SHORTEST_HEADER: Final = len("cookie:")
_SHORTEST_TOKEN: Final = 8
# How many values of headers are remembered: each costs a search in every text that is written.
_MOST_MET: Final = 200
_BASE64: Final = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_BASIC: Final = re.compile(
    r"(?i:\bbasic)[ +:]+(?P<token>(?:[\w+/-]{4})+(?:[\w+/-]{2,3})?)", re.ASCII
)
# A value in quotes: the whole of a cookie's, or what proves who asks in a header with parameters.
_QUOTED: Final = re.compile(r'^"([^"]*)"$|(?i:\b(?:response|signature|token)=)"([^"]*)"')
_HEADER_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_WORDS: Final = ("true", "false", "null", "none", "undefined")

# Schemes whose credentials are a token as it is, and headers without one.
_SCHEMES: Final = ("", "bearer", "token", "apikey", "bot")

_HEADERS: Final = {
    name.lower(): f"[secret {name}]"
    for name in ("Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie")
}
# `Authorization: Bearer x` up to the end of the line; `"authorization": "Bearer x"` and
# `('authorization', 'Bearer x')` up to the closing quote, which may be escaped like the opening.
_HEADER_IN_TEXT: Final = re.compile(
    r"""(?<![\w-])(?P<name>(?:proxy-)?authorization|(?:set-)?cookie)
        (?: \\?["'] \s*[:=,]\s* b?(?P<quote>\\?["'])
            (?P<quoted>(?:(?!(?P=quote))(?:\\\\\\.|\\.|[^\\]))*)
        |   [ \t]*:[ \t]* (?P<bare>[^\r\n]+) )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


class Masker:
    """Replaces the given secret values, and credentials in headers, by their names.

    Several values may have one name: two Workers each have an `API_KEY` of their own.

    >>> Masker({"API_KEY": "k-12345"})("GET /?key=k-12345")
    'GET /?key=[secret API_KEY]'
    """

    __slots__ = ("_encoded", "_forms", "_given", "_met", "_names", "_shortest", "_spaced")

    def __init__(self, values: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        self._met: dict[tuple[str, str], None] = {}
        forms: dict[str, _Form] = {}
        self._names: dict[str, str] = {}
        for name, value in values.items() if isinstance(values, Mapping) else values:
            if len(value) < _SHORTEST or value.lower() in _WORDS:
                continue
            self._names.setdefault(value, f"[secret {name}]")
            for form in _forms_of(value):
                forms.setdefault(form.text, form._replace(mask=f"[secret {name}]"))
        self._given = forms
        self._arrange(forms)

    def _arrange(self, forms: dict[str, _Form]) -> None:
        # Longest first, so that of two secrets that start at one place the longer gives the name.
        self._forms = tuple(sorted(forms.values(), key=lambda form: -len(form.text)))
        self._shortest = min((len(form.text) for form in self._forms), default=0)
        # In a form's text a space is `+`, and what is `+` cannot be told: both are compared as one.
        self._spaced = tuple(
            form._replace(text=form.text.replace("+", " "))
            for form in self._forms
            if " " in form.text
        )
        self._encoded = encoded("".join(form.text for form in self._forms))

    def meet(self, headers: Iterable[tuple[str, str]]) -> None:
        """Remember the values of headers for credentials: what a Worker does with them is masked.

        The latest 200 different ones are remembered.
        """
        new: dict[tuple[str, str], None] = {}
        for name, value in headers:  # of each request and each answer: most have none
            mask = _HEADERS.get(name.lower())
            if mask is not None and len(value) >= _SHORTEST_TOKEN:
                new[mask, value] = None
        if not new or new.keys() <= self._met.keys():
            return
        self._met |= new
        for oldest in list(self._met)[:-_MOST_MET]:
            del self._met[oldest]
        forms = dict(self._given)
        for mask, value in self._met:
            whole = () if self._known(value) else (value,)
            for text in (*whole, *_tokens(mask, value)):
                forms.setdefault(text, _Form(text, mask))
        self._arrange(forms)

    def forget(self) -> None:
        """Forget the headers met."""
        self._met.clear()
        self._arrange(self._given)

    def __call__(self, text: str) -> str:
        """Return `text` with secrets and credentials masked."""
        # Most texts are short and hold no secret: nothing below may cost them much.
        if self._shortest and len(text) >= self._shortest:
            spans = self._spans(text)
            if spans:
                text = _replace(text, spans)
        if len(text) > _SHORTEST_HEADER:
            lower = text.lower()
            if "cookie" in lower or "authorization" in lower:
                return _HEADER_IN_TEXT.sub(self._mask_header, text)
        return text

    def _spans(self, text: str) -> list[_Span]:
        """Return where secrets stand in a text, encoded or not."""
        spans = self._plain_spans(text)
        if "%" in text or "\\" in text or "&" in text:
            spans += self._encoded_spans(text)
        return spans

    def _encoded_spans(self, text: str) -> Iterator[_Span]:
        parts = Parts(text, self._encoded)
        for reading in islice(readings(parts.text), 1, None):
            for span in self._plain_spans(reading.text):
                start, end = parts.origin(*reading.origin(*span[:2]))
                yield start, end, span[2]

    def _plain_spans(self, text: str) -> list[_Span]:
        spans = [span for form in self._forms if form.text in text for span in form.find(text)]
        if self._spaced and "+" in text:
            spaced = text.replace("+", " ")
            spans += [
                span for form in self._spaced if form.text in spaced for span in form.find(spaced)
            ]
        if "basic" in text.lower():
            spans += [span for match in _BASIC.finditer(text) for span in self._in_basic(match)]
        return spans

    def _in_basic(self, match: re.Match[str]) -> Iterator[_Span]:
        """Yield a token of Basic authorization that holds a secret, however short."""
        token = match["token"].replace("-", "+").replace("_", "/")
        data = base64.b64decode(token + "==="[: -len(token) % 4])
        text = data.decode("utf-8", "surrogateescape")
        for form in self._forms:
            if form.text in text:
                yield *match.span("token"), form.mask
                return

    def _mask_header(self, match: re.Match[str]) -> str:
        group = "bare" if match["bare"] else "quoted"
        value = match[group].strip()
        for scheme, token in (("", value), value.partition(" ")[::2]):
            if token in self._names.values() and scheme.lower() in _SCHEMES:
                return match[0]
        start, end = match.span(group)
        mask = _HEADERS[match["name"].lower()]
        return f"{match.string[match.start() : start]}{mask}{match.string[end : match.end()]}"

    def header(self, name: str, value: str) -> str:
        """Return a header's value, masked as a whole where the header is for credentials."""
        return credential(name) or self(value)

    def named_header(self, name: str, value: str) -> str:
        """Like `header`, but a token that is a secret by itself is written by its name.

        What is masked can then be put in again where the names of secrets are known.

        >>> Masker({"API_KEY": "k-12345"}).named_header("authorization", "Bearer k-12345")
        'Bearer [secret API_KEY]'
        """
        mask = credential(name)
        if mask is None:
            return self(value)
        return self._known(value) or mask

    def _known(self, value: str) -> str | None:
        """Return a header's value whose token is a secret by itself, with its name."""
        scheme, space, token = value.rpartition(" ")
        known = self._names.get(token) if scheme.lower() in _SCHEMES else None
        return None if known is None else f"{scheme}{space}{known}"

    def octets(self, data: bytes) -> bytes:
        """Return `data` with the secret values in it masked."""
        text = data.decode("utf-8", "surrogateescape")
        spans = self._spans(text) if self._shortest else []
        return _replace(text, spans).encode("utf-8", "surrogateescape") if spans else data


_Span = tuple[int, int, str]


class _Form(NamedTuple):
    """A form in which a secret may stand in a text.

    `before` and `after`: the character there may hold some of the secret's bits (of base64).
    """

    text: str
    mask: str = ""
    before: bool = False
    after: bool = False
    padded: bool = False

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield where it stands: start, end, what is written instead."""
        start = text.find(self.text)
        while start >= 0:
            end = start + len(self.text)
            first = start - (self.before and text[start - 1 : start] in _BASE64)
            last = end + (self.after and text[end : end + 1] in _BASE64)
            if self.padded:
                last += len(text[last : last + 2]) - len(text[last : last + 2].lstrip("="))
            yield first, last, self.mask
            start = text.find(self.text, end)


def credential(header: object) -> str | None:
    """Return what is written instead of the value of a header for credentials, None for others."""
    if isinstance(header, bytes):
        header = header.decode("latin-1")
    return _HEADERS.get(header.lower()) if isinstance(header, str) else None


def _tokens(mask: str, value: str) -> Iterator[str]:
    """Yield the parts of a header's value that are as secret as the whole."""
    if mask == _HEADERS["cookie"]:
        pairs = [pair.partition("=") for pair in value.split(";")]
    elif mask == _HEADERS["set-cookie"]:
        pairs = [value.partition(";")[0].partition("=")]  # attributes such as the domain follow
    else:
        pairs = [value.partition(" ")]
    tokens = [token.strip() for _, _, token in pairs]
    # What is in quotes is used without them: a cookie's value, the answer of Digest.
    tokens += [found[1] or found[2] for token in tokens for found in _QUOTED.finditer(token)]
    for token in tokens:
        if len(token) >= _SHORTEST_TOKEN:
            yield token


def _replace(text: str, spans: list[_Span]) -> str:
    """Replace what stands in spans; overlapping ones are replaced as one."""
    pieces: list[str] = []
    done = 0
    masks: list[str] = []
    # Of those that start at one place the longest first: it gives the name.
    for start, end, mask in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= done:
            pieces += [*masks, text[done:start]]
            masks = []
        if end > done and mask not in masks:
            masks.append(mask)
        done = max(done, end)
    return "".join([*pieces, *masks, text[done:]])


def _forms_of(value: str) -> Iterator[_Form]:
    """Yield the forms in which a secret stands in what a text says."""
    lines = [line.strip() for line in value.splitlines()] if len(value.splitlines()) > 1 else []
    texts = [value, value.strip(), *(line for line in lines if len(line) >= _SHORTEST_LINE)]
    for text in dict.fromkeys(texts):
        if len(text) < _SHORTEST:
            continue
        # The platform writes names of headers in lower case.
        if len(text) >= _SHORTEST_TOKEN and _HEADER_NAME.fullmatch(text):
            yield _Form(text.lower())
        # As it is in a JSON or URL that is base64-encoded as a whole.
        inner = (text, json.dumps(text)[1:-1], quote(text, safe="", errors="surrogatepass"))
        yield from (_Form(form) for form in dict.fromkeys((text, *_misread(text))))
        for form in dict.fromkeys(inner):
            yield from _base64_forms(form)


def _misread(text: str) -> Iterator[str]:
    """Yield what a text looks like in a header, whose UTF-8 is read as Latin-1, and vice versa."""
    if not text.isascii():
        data = text.encode("utf-8", "surrogatepass")
        yield data.decode("latin-1")
        yield data.decode("utf-8", "surrogateescape")
        with suppress(UnicodeEncodeError):
            yield text.encode("latin-1").decode("utf-8", "surrogateescape")


def _base64_forms(value: str) -> list[_Form]:
    """Return what a secret's bytes look like inside base64 text, at each of three alignments.

    Six bits make a character, so the one before the secret and the one after may hold bits of it
    and of its neighbours: those may be any.
    """
    data = value.encode("utf-8", "surrogatepass")
    if len(data) < _SHORTEST_BASE64:
        return []
    forms = []
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + data).decode()
        first, last = -(-offset * 8 // 6), (offset + len(data)) * 8 // 6
        core = encoded[first:last]
        after = (offset + len(data)) % 3 > 0
        forms += [
            _Form(text, before=offset > 0, after=after, padded=True)
            for text in (core, core.replace("+", "-").replace("/", "_"))
        ]
    return forms
