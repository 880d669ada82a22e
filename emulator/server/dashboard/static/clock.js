// The clock: now, what is due next, and moving it.

view("clock", "Clock", (at) => ask("/clock", { from: from(at), rows: ROWS }), (clock, at) => [
  title1("Clock"),
  facts(["Now", time(clock.now)], ["Runs", clock.real ? "by the machine" : "only when moved"],
    ["Ahead of the machine", clock.real ? duration(clock.offset * 1e6) : null],
    ["Pending", plain(clock.total)]),
  el("div", { className: "actions", role: "group", "aria-label": "Move the clock" },
    ["1 minute", "1 hour", "1 day", "3 days"].map((each) => button(`+${each}`, () =>
      perform("/clock/advance", { duration: each },
        ({ now }) => `Time moved on by ${each}, to ${clockText(now)}.`))),
    button("To the next event", toNext, { disabled: !clock.total })),
  form("advance", "Move", [field("By", input("duration",
    { required: true, placeholder: "2 h 30 min" }))],
  (given) => perform("/clock/advance", given,
    ({ now }) => `Time moved on by ${given.duration}, to ${clockText(now)}.`)),
  el("h2", {}, "Due next"),
  pager(at, clock.total, from(at), ROWS),
  table("Due next", ["Due", "In", "What", "Line"], clock.timers.map((each, place) =>
    row(`${each.due} ${each.owner} ${place}`, time(each.due), each.in,
      [each.owner, each.passive ? [" ", badge("background", "")] : null], each.location ?? "–")),
  "Nothing is pending."),
]);
