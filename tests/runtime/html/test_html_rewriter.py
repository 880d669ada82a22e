"""`HTMLRewriter`: what comes out is what came out of workerd (1.20261117.1)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import js
import pytest
from pyodide.ffi import create_proxy, to_js
from workers import Response, WorkerEntrypoint

from emulator import Emulator
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.asyncio
PAGE = (
    '<!DOCTYPE html><html><head><title>T &amp; x</title></head><body class="a b"><!--c-->'
    '<div id=main data-x="1"><p>one</p><p class=two>two <b>bold</b></p><img src="a.png"><br/>tail'
    "</div><script>if (a<b) {}</script></body></html>"
)


def o(**members: Any) -> Any:
    return to_js(members, dict_converter=js.Object.fromEntries)


def told(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except JsException as error:
        return f"{error.name}: {error.message}"


async def inside(work: Callable[[], Any]) -> Any:
    found: list[Any] = []

    async def fetch(self: Any, request: Any) -> Any:
        found.append(await work())
        return Response("")

    cls = type("Default", (WorkerEntrypoint,), {"fetch": fetch})
    async with Emulator({"main": cls}) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 200, response.text
    return found[0]


async def rewrite(html: str, *added: Any, document: Any = None) -> str:
    """Rewrite with pairs of selector and handlers (a function is the one of elements)."""
    rewriter = js.HTMLRewriter.new()
    for selector, handlers in zip(added[::2], added[1::2], strict=True):
        given = {"element": handlers} if callable(handlers) else handlers
        functions = {name: create_proxy(function) for name, function in given.items()}
        rewriter.on(selector, o(**functions))
    if document:
        rewriter.onDocument(o(**{name: create_proxy(f) for name, f in document.items()}))
    try:
        return await rewriter.transform(js.Response.new(html)).text()
    except JsException as error:
        return f"{error.name}: {error.message}"


async def rewritten(html: str, *added: Any, document: Any = None) -> str:
    return await inside(lambda: rewrite(html, *added, document=document))


async def test_what_nobody_touches_stays_as_it_was() -> None:
    odd = "<a HREF=\"x\" b='y' c >k</A ><p>&nbsp;&#x41; <b <i>é\n</p x><!-- x --!><?php x?>\n<![C"
    for html in (PAGE, odd, "", "text", "a < b", "<p", "<!--", "</", "<p>\r\n<br/>"):
        assert await rewritten(html, "nothing", lambda element: None) == html
        assert await rewritten(html, "*", lambda element: element.getAttribute("x")) == html


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("*", "html,head,title,body,divmain,p,p,b,img,br,script"),
        ("P", "p,p"),
        (".a", "body"),
        ("#main", "divmain"),
        ("[src]", "img"),
        ("[data-x='1']", "divmain"),
        ("[class~=b]", "body"),
        ("[src$=png]", "img"),
        ("[src^=a]", "img"),
        ("[src*='.']", "img"),
        ("[src$=PNG i]", "img"),
        ("[lang|=en]", ""),
        ("body p", "p,p"),
        ("div > p", "p,p"),
        ("body > p", ""),
        ("p:first-child", "p"),
        ("p:nth-child(2)", "p"),
        ("p:nth-child(odd)", "p"),
        ("p:nth-child(2n+1)", "p"),
        ("p:not(.two)", "p"),
        ("p, img", "p,p,img"),
        ("div p b", "b"),
        ("p:nth-of-type(2)", "p"),
        ("p:first-of-type", "p"),
        ("div#main[data-x]", "divmain"),
        ("*.two", "p"),
    ],
)
async def test_selectors(selector: str, names: str) -> None:
    found: list[str] = []

    def element(e: Any) -> None:
        found.append(e.tagName + (e.getAttribute("id") or ""))

    await rewritten(PAGE, selector, element)
    assert ",".join(found) == names


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ("p + p", "Unsupported combinator `+` in selector."),
        ("p:last-child", "Unsupported pseudo-class or pseudo-element in selector."),
        ("p::before", "Unsupported pseudo-class or pseudo-element in selector."),
        ("", "The selector is empty."),
        ("[data-x=1]", "Unexpected token in the attribute selector."),
    ],
)
async def test_selectors_that_are_refused(selector: str, text: str) -> None:
    answer = told(lambda: js.HTMLRewriter.new().on(selector, o()))
    assert answer == f"TypeError: Parser error: {text}"


@pytest.mark.parametrize(
    ("method", "escaped", "twice"),
    [
        ("before", "&lt;i&gt;&amp;<p>x<b>y</b></p>!", "<i>&2<p>x<b>y</b></p>!"),
        ("after", "<p>x<b>y</b></p>&lt;i&gt;&amp;!", "<p>x<b>y</b></p>2<i>&!"),
        ("prepend", "<p>&lt;i&gt;&amp;x<b>y</b></p>!", "<p>2<i>&x<b>y</b></p>!"),
        ("append", "<p>x<b>y</b>&lt;i&gt;&amp;</p>!", "<p>x<b>y</b><i>&2</p>!"),
        ("replace", "&lt;i&gt;&amp;!", "2!"),
        ("setInnerContent", "<p>&lt;i&gt;&amp;</p>!", "<p>2</p>!"),
    ],
)
async def test_content_goes_where_it_is_put(method: str, escaped: str, twice: str) -> None:
    def once(element: Any) -> None:
        getattr(element, method)("<i>&")

    def again(element: Any) -> None:
        getattr(element, method)("<i>&", html=True)
        getattr(element, method)("2")

    assert await rewritten("<p>x<b>y</b></p>!", "p", once) == escaped
    assert await rewritten("<p>x<b>y</b></p>!", "p", again) == twice


async def test_attributes() -> None:
    def change(e: Any) -> None:
        e.setAttribute("href", 'q"&<').setAttribute("n", "1")
        e.removeAttribute("b")

    found: list[Any] = []

    def look(e: Any) -> None:
        found.extend([e.getAttribute("HREF"), e.getAttribute("b"), e.hasAttribute("z")])
        found.extend([list(map(list, e.attributes)), e.removed, e.namespaceURI])

    assert await rewritten("<a HREF=\"x\" b='y' c>k</a>", "a", change) == (
        '<a HREF="q&quot;&<" c n="1">k</a>'
    )
    await rewritten('<a HREF="x" b c="">k</a>', "a", look)
    assert found == [
        *("x", "", False, [["href", "x"], ["b", ""], ["c", ""]], False),
        "http://www.w3.org/1999/xhtml",
    ]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("setAttribute", "a b", "` ` character is forbidden in the attribute name"),
        ("setAttribute", "", "Attribute name can't be empty."),
        ("tagName", "a b", "` ` character is forbidden in the tag name"),
    ],
)
async def test_names_are_checked(name: str, value: str, text: str) -> None:
    def element(e: Any) -> None:
        if name == "tagName":
            e.tagName = value
        else:
            e.setAttribute(value, "1")

    assert await rewritten("<p>x</p>", "p", element) == f"TypeError: Parser error: {text}"


async def test_removing_and_renaming() -> None:
    def rename(e: Any) -> None:
        e.tagName = "section"

    page = "<p a=1>x<b>y</b></p>!"
    assert await rewritten(page, "p", lambda e: e.remove()) == "!"
    assert await rewritten(page, "p", lambda e: e.removeAndKeepContent()) == "x<b>y</b>!"
    assert await rewritten(page, "p", rename) == "<section a=1>x<b>y</b></section>!"
    inner: list[str] = []
    nested = "<div><p>a</p></div>"
    fill = lambda e: e.setInnerContent("X")  # noqa: E731
    seen = lambda e: inner.append(e.tagName)  # noqa: E731
    assert await rewritten(nested, "div", fill, "p", seen) == "<div>X</div>"
    assert inner == ["p"]


async def test_elements_without_an_end() -> None:
    def around(e: Any) -> None:
        e.append("no")
        e.after("yes")
        e.before("b")

    assert await rewritten("<img src=a><p>z", "img", around) == "b<img src=a>yes<p>z"
    assert await rewritten("<img src=a>", "img", lambda e: e.setInnerContent("x")) == "<img src=a>"
    assert await rewritten("<div/>x</div>", "div", lambda e: e.append("A")) == "<div/>xA</div>"
    assert await rewritten("<div>x", "div", lambda e: e.append("A")) == "<div>x"
    svg = "<svg><g>x</g><circle/></svg>"
    assert await rewritten(svg, "circle", lambda e: e.after("Z")) == "<svg><g>x</g><circle/>Z</svg>"
    raw = "<textarea><p>x</p></textarea><style>p>a{}</style><title><b></title>"
    assert await rewritten(raw, "p,b", lambda e: e.remove()) == raw


async def test_end_tags() -> None:
    names: list[str] = []

    def both(e: Any) -> None:
        def end(tag: Any) -> None:
            names.append(tag.name)
            tag.before("1")
            tag.after("2")

        e.onEndTag(create_proxy(end))

    def rename(e: Any) -> None:
        def end(tag: Any) -> None:
            tag.name = "b"

        e.onEndTag(create_proxy(end))

    drop = lambda e: e.onEndTag(create_proxy(lambda tag: tag.remove()))  # noqa: E731
    assert await rewritten("<p>x</p>", "p", both) == "<p>x1</p>2"
    assert names == ["p"]
    assert await rewritten("<p>x</p>", "p", rename) == "<p>x</b>"
    assert await rewritten("<p>x</p>", "p", drop) == "<p>x"
    assert await rewritten("<img>", "img", both) == "TypeError: Parser error: No end tag."


async def test_an_end_tag_closes_what_is_open_inside() -> None:
    def ends(before: str, after: str) -> Any:
        def element(e: Any) -> None:
            e.append(before)
            e.after(after)

        return element

    def rename(e: Any) -> None:
        e.tagName = "q"

    page = "<div><p>x</div>y"
    assert await rewritten(page, "p", ends("A", "B")) == "<div><p>xA</div>By"
    both = await rewritten(page, "p", ends("A", "B"), "div", ends("C", "D"))
    assert both == "<div><p>xC</div>Dy"
    assert await rewritten(page, "p", lambda e: e.setInnerContent("I")) == "<div><p>I</div>y"
    assert await rewritten(page, "p", lambda e: e.remove()) == "<div>y"
    assert await rewritten(page, "p", rename) == "<div><q>x</q>y"
    items = "<ul><li>a<li>b</ul>"
    assert await rewritten(items, "li", ends("A", "B")) == "<ul><li>a<li>bA</ul>B"
    stray = "<p>x</b></p></p>"
    assert await rewritten(stray, "p", lambda e: e.after("Z")) == "<p>x</b></p>Z</p>"


async def test_texts_come_with_an_empty_last_piece() -> None:
    seen: list[Any] = []

    def text(chunk: Any) -> None:
        seen.append((chunk.text, chunk.lastInTextNode))
        if chunk.text == "c":
            chunk.replace("C<")

    page = "<p>a &amp; b<b>c</b>d</p>e"
    assert await rewritten(page, "p", {"text": text}) == "<p>a &amp; b<b>C&lt;</b>d</p>e"
    assert seen == [
        *(("a &amp; b", False), ("", True), ("c", False), ("", True), ("d", False), ("", True)),
    ]


async def test_comments() -> None:
    def change(comment: Any) -> None:
        assert comment.text == " a "
        comment.text = "new"

    def replace(comment: Any) -> None:
        comment.before("x")
        comment.after("y")
        comment.replace("z")

    def spoil(comment: Any) -> None:
        comment.text = "-->"

    page = "<p><!-- a --></p><!--b-->"
    assert await rewritten(page, "p", {"comments": change}) == "<p><!--new--></p><!--b-->"
    assert await rewritten(page, "p", {"comments": replace}) == "<p>xzy</p><!--b-->"
    refused = "Parser error: Comment text shouldn't contain a comment-closing sequence."
    assert await rewritten(page, "p", {"comments": spoil}) == f"TypeError: {refused}"


async def test_the_document_itself() -> None:
    seen: list[Any] = []
    document = {
        "doctype": lambda d: seen.append((d.name, bool(d.publicId))),
        "comments": lambda c: seen.append(c.text),
        "text": lambda t: seen.append(t.text),
        "end": lambda e: e.append("END<"),
    }
    page = "<!DOCTYPE html><!--x--><p>y</p>"
    assert await rewritten(page, document=document) == f"{page}END&lt;"
    assert seen == [("html", False), "x", "y", ""]


async def test_handlers_run_in_order_and_may_wait() -> None:
    order: list[int] = []

    async def slow(e: Any) -> None:
        await asyncio.sleep(5)
        order.append(1)
        e.append("A")

    html = await rewritten("<p class=x>y</p>", "p", slow, ".x", lambda e: order.append(2))
    assert (html, order) == ("<p class=x>yA</p>", [1, 2])


async def test_a_handler_that_raises_breaks_the_body() -> None:
    def fail(e: Any) -> None:
        raise ValueError("boom")

    async def work() -> Any:
        try:
            return await rewrite("<p>x</p>", "p", fail)
        except ValueError as error:
            return str(error)

    assert await inside(work) == "boom"


async def test_an_object_of_handlers_and_one_that_is_kept_too_long() -> None:
    kept: list[Any] = []

    class Handler:
        def element(self, e: Any) -> None:
            kept.append(e)
            e.setAttribute("seen", "1")

    async def work() -> Any:
        handler = create_proxy(Handler())
        rewriter = js.HTMLRewriter.new().on("p", handler)
        html = await rewriter.transform(js.Response.new("<p>x</p>")).text()
        return html, told(lambda: kept[0].append("x"))

    html, refused = await inside(work)
    assert html == '<p seen="1">x</p>'
    assert refused == (
        "TypeError: This content token is no longer valid. Content tokens are only valid during "
        "the execution of the relevant content handler."
    )


async def test_the_response_keeps_what_it_had() -> None:
    async def work() -> Any:
        headers = to_js({"x-a": "1"}, dict_converter=js.Object.fromEntries)
        response = js.Response.new("<p>", status=404, headers=headers)
        made = js.HTMLRewriter.new().transform(response)
        empty = js.HTMLRewriter.new().transform(js.Response.new(None))
        return made.status, made.headers.get("x-a"), bool(empty.body), await made.text()

    assert await inside(work) == (404, "1", False, "<p>")


async def test_misuse_has_the_runtimes_texts() -> None:
    new = js.HTMLRewriter.new
    failed = "TypeError: Failed to execute"
    assert told(lambda: new().on("p")) == (
        f"{failed} 'on' on 'HTMLRewriter': parameter 2 is not of type 'ElementContentHandlers'."
    )
    assert told(lambda: new().onDocument()) == (
        f"{failed} 'onDocument' on 'HTMLRewriter': parameter 1 is not of type "
        "'DocumentContentHandlers'."
    )
    assert told(lambda: new().transform("x")) == (
        f"{failed} 'transform' on 'HTMLRewriter': parameter 1 is not of type 'Response'."
    )
