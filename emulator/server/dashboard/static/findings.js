// Findings: what is wrong, or probably not meant.

view("findings", "Findings", (at) => ask("/findings", { from: from(at), rows: ROWS }),
  (found, at) => [
    title1("Findings"), pager(at, found.total, from(at), ROWS),
    table("Findings", ["Time", "Finding", "What", "Line", "Where"], found.findings.map(
      (each, place) => row(`${each.at} ${each.code} ${place}`, time(each.at),
        [badge(each.code, each.fails ? "bad" : "hold"),
          el("div", {}, el("small", {}, each.meaning))],
        el("td", { className: "body" }, each.message), each.location ?? "–",
        el("td", { className: "body" }, [each.subject, each.worker && `Worker ${each.worker}`]
          .filter(Boolean).join(", ") || "–"))), "Nothing was found."),
  ]);
