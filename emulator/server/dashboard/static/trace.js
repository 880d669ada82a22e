// The trace as a timeline, in a frame; it stays as it is until it is loaded again.

view("trace", "Trace", () => ask("/trace"), ({ last, kept }, at) => {
  const many = Number(at.query.get("last")) || 2000;
  const upTo = Number(at.query.get("to")) || last;
  const asked = new URLSearchParams({ last: many, to: upTo });
  if (!at.query.get("to")) {
    history.replaceState(null, "", here(at, { to: last }));
    shownAt = location.hash;
  }
  return [
    title1("Trace"),
    el("div", { className: "actions" },
      el("a", { className: "button", href: here(at, { to: last }) },
        last > upTo ? `Show ${count(last - upTo, "new event")}` : "Nothing new"),
      [500, 2000, 10000].map((each) => el("a", {
        href: here(at, { last: each, to: last }), "aria-current": each === many ? "true" : undefined,
      }, `the last ${plain(each)}`)),
      el("span", { className: "empty" }, `${count(kept, "event")} kept`),
      el("a", { href: `${API}/trace/page?${asked}`, target: "_blank", rel: "noopener" },
        "in a page of its own")),
    el("iframe", { title: "The trace as a timeline", sandbox: "allow-scripts",
      src: `${API}/trace/page?${asked}` }),
  ];
});
