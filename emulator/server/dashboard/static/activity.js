// What Workers did: requests and other invocations, background work, log lines.

const TABS = { requests: "Requests", background: "Background work", logs: "Logs" };

view("requests", "Requests",
  (at) => ask(`/${tabOf(at)}`, { from: from(at), rows: ROWS,
    failed: at.query.get("failed") ? "1" : undefined }),
  (found, at) => [
    title1("Requests"),
    el("nav", { className: "tabs", "aria-label": "Activity" }, Object.entries(TABS).map(
      ([name, label]) => el("a", { href: href("requests", name === "requests" ? [] : [name]),
        "aria-current": tabOf(at) === name ? "page" : undefined }, label))),
    { requests: invocations, background, logs }[tabOf(at)](found, at),
  ]);

const tabOf = (at) => (Object.hasOwn(TABS, at.path[0] ?? "") ? at.path[0] : "requests");

function invocations(found, at) {
  return [
    el("p", {}, found.failed
      ? el("a", { href: here(at, { failed: undefined, from: undefined }) }, "Show all")
      : el("a", { href: here(at, { failed: 1, from: undefined }) }, "Show only what failed")),
    pager(at, found.total, from(at), ROWS),
    table("Invocations", ["Time", "What", "Worker", "Result", "Took", "Errors and logs"],
      found.requests.map((each, place) => row(`${each.at} ${each.subject} ${place}`,
        time(each.at), el("td", { className: "body" }, each.method
          ? `${each.method} ${each.url}` : `${each.subject}`), each.worker ?? "–",
        outcome(each), each.ended ? duration(micros(each.ended) - micros(each.at)) : "–",
        el("td", { className: "body" }, each.told.length ? told(each) : "–"))),
      "Nothing has run yet."),
  ];
}

function outcome(each) {
  if (each.cut) return badge("lost");
  if (each.status !== null) {
    return badge(each.status, each.status >= 500 ? "bad" : each.status >= 400 ? "hold" : "done");
  }
  if (each.ended) return badge("done");
  return each.kind === "request" ? badge("running") : "–";
}

// Errors stand open, mere logs are folded.
function told(each) {
  const said = each.told.map(({ what, text, error }) => el("div", { className: error ? "bad" : "" },
    el("strong", {}, `${what}: `), text));
  return each.failed ? said : el("details", { "data-key": "told" },
    el("summary", {}, count(said.length, "line")), said);
}

function background(found, at) {
  return [pager(at, found.total, from(at), ROWS),
    table("Background work", ["Given", "By", "Line", "Worker", "State", "Error"],
      found.tasks.map((each, place) => row(`${each.created} ${each.event} ${place}`,
        time(each.created), el("td", { className: "body" }, each.event), each.location,
        each.worker, badge(each.state), el("td", { className: "body bad" }, each.error ?? ""))),
      "Nothing was given to waitUntil.")];
}

function logs(found, at) {
  return [pager(at, found.total, from(at), ROWS),
    table("Logs", ["Time", "Worker", "Level", "Text"], found.logs.map((each, place) =>
      row(`${each.at} ${found.total - from(at) - place}`, time(each.at), each.worker,
        badge(each.level, { error: "bad", warn: "hold" }[each.level] || ""),
        el("td", { className: "body" }, each.text))), "Nothing was logged.")];
}
