// The chart of a trace. Each section.trace holds its data as JSON (chart.py says which) and its
// text; this script builds the chart between them, with what text.js has. It is one part with one
// state, the view, and so one function.
//
// Positions: an event has a place on the axis (`places`, in slots or in microseconds), and the view
// says which place is at the left edge and how many pixels a unit takes. Only what is in view is in
// the document, and events too close to be told apart share a mark.
const NAMES = 216; // pixels for the names of lanes, as in timeline.css
const ROW = 20, PAD = 6, HEADING = 20, CLOSE = 9, EDGE = 12, LETTER = 6.3; // pixels
const MOST_MARKS = 500, MOST_LANES = 100, MOST_ROWS = 8, MOST_LISTED = 200, MOST_KIN = 40;
const RANK = { "": 0, done: 1, bad: 2, lost: 3, fault: 4 };
const SIGN = { fault: "!", lost: "✕" };

function read(root) {
  const { start, lanes, events, spans } = JSON.parse(root.querySelector("script").textContent);
  const trace = {
    start: Date.parse(start),
    lanes: lanes.map(([name, group, depth]) => ({
      name, group, depth, events: [], spans: [], below: [], folded: false,
    })),
  };
  trace.events = events.map(([at, place, kind, tone, label, data], index) => {
    const lane = trace.lanes[place];
    const event = { index, at, lane, home: lane, kind, tone, label, data, row: 0, span: null };
    lane.events.push(event);
    return event;
  });
  for (const [from, to, state] of spans) {
    const span = { from: trace.events[from], to: trace.events[to], state, row: 0 };
    span.from.span = span;
    span.from.lane.spans.push(span);
  }
  trace.troubles = trace.events.filter((event) => SIGN[event.tone]);
  let parent = null;
  for (const lane of trace.lanes) {
    if (lane.depth) {
      parent.below.push(lane);
      parent.folded = trace.lanes.length > MOST_LANES;
    } else parent = lane;
  }
  return trace;
}

let charts = 0;

function mount(root) {
  const trace = read(root), { events } = trace;
  const name = `trace${++charts}`, isPage = !!root.closest(".page");
  let shown = events, lanes = [], instants = [], places = new Float64Array(events.length);
  let byTime = false, extent = 1, left = 0, scale = 1, width = 600, selected = null, height = 0;
  let kin = new Set(), haystack = null;

  // -- the parts of the chart -------------------------------------------------------------------

  const button = (label, text, act) =>
    make("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
  const field = make("input", {
    type: "search", placeholder: "Filter: emails ack …", "aria-label": "Filter events",
  });
  const found = make("output", { className: "found" });
  const axis = ["Order", "Time"].map((label, at) => make("button", {
    type: "button", "aria-pressed": String(!at), onclick: () => turn(!!at),
    title: at ? "Virtual time to scale" : "Events in order, gaps compressed",
  }, label));
  const asText = make("button", {
    type: "button", "aria-pressed": "false", title: "The trace as text (t)",
    onclick: () => showText(),
  }, "Text");
  const bar = make("div", { className: "bar", role: "toolbar", "aria-label": "Chart" },
    field, found, make("span", { role: "group", "aria-label": "Axis" }, ...axis),
    make("span", { role: "group", "aria-label": "Zoom" },
      button("Zoom out (-)", "−", () => zoom(1 / 1.6)),
      button("Zoom in (+)", "+", () => zoom(1.6)),
      button("Show all (0)", "All", () => { fit(); draw(); })),
    make("span", { role: "group", "aria-label": "Faults and losses" },
      button("Previous fault or loss (p)", "‹", () => seek(-1)),
      button("Next fault or loss (n)", "›", () => seek(1))),
    asText);
  const overview = make("div", { className: "overview", "aria-hidden": "true" });
  const ruler = make("div", { className: "ruler", "aria-hidden": "true" });
  const sheet = make("div", { className: "sheet", role: "presentation" });
  const box = make("div", {
    className: "lanes", role: "listbox", tabIndex: 0, "aria-label": "Events",
    "aria-describedby": `${name}-keys`,
  }, sheet);
  const details = make("div", { className: "details" });
  const list = make("ol", { className: "list" });
  const keys = make("p", { className: "keys", id: `${name}-keys` },
    "← → events · ↑ ↓ lanes · n p faults and losses · + − 0 zoom · "
    + "Shift ← → pan · f fold a queue · / filter · t text · Esc none. The wheel zooms, dragging moves.");
  const side = make("aside", { "aria-label": "Details" },
    ...(trace.troubles.length ? [make("h2", {}, "Faults and losses"), list] : []),
    make("h2", {}, "Event"), details, keys);
  const grid = make("div", { className: "grid" },
    make("div", { className: "chart" }, overview, ruler, box), side);
  root.querySelector("pre").before(bar, grid);
  root.classList.add("live");

  // -- where things are -------------------------------------------------------------------------

  const x = (event) => EDGE + (places[event.index] - left) * scale;

  function place() {
    let at = 0.5, before = null;
    instants = [];
    for (const event of events) {
      if (event.hidden) {
        places[event.index] = Math.max(at - 1, 0);
        continue;
      }
      if (before === null || before !== event.at) {
        if (before !== null) at += 0.4 + 0.3 * Math.log10(Math.abs(event.at - before) + 1);
        const gap = event.at - (before ?? event.at);
        instants.push({ at: event.at, first: event, last: event, gap });
        before = event.at;
      }
      places[event.index] = at;
      instants[instants.length - 1].last = event;
      at += 1;
    }
    extent = Math.max(at - 0.5, 1);
    if (byTime) placeByTime();
  }

  function placeByTime() {
    let first = Infinity, last = -Infinity;
    for (const { at } of shown) [first, last] = [Math.min(first, at), Math.max(last, at)];
    if (first > last) first = last = 0;
    const margin = Math.max((last - first) * 0.015, 1);
    for (const event of events) places[event.index] = event.at - first + margin;
    instants.origin = first - margin;
    extent = last - first + 2 * margin;
  }

  // Puts the lanes below one another; a folded one shows what happened in those below it.
  function stack() {
    let y = 0, group = "", folded = false;
    lanes = [];
    for (const lane of trace.lanes) {
      if (!lane.depth) folded = lane.folded;
      else if (folded) continue;
      const from = folded ? [lane, ...lane.below] : [lane];
      lane.shown = from.flatMap((each) => each.events).filter((event) => !event.hidden);
      if (folded) lane.shown.sort((one, other) => one.index - other.index);
      const isSeen = (each) => each.events.some((event) => !event.hidden);
      if (![lane, ...lane.below].some(isSeen)) continue;
      lane.bars = from.flatMap((each) => each.spans);
      lane.heading = lane.group !== group;
      if (lane.heading) [group, y] = [lane.group, y + HEADING];
      lane.top = y;
      lane.height = pack(lane) * ROW + PAD;
      y += lane.height;
      lanes.push(lane);
    }
    sheet.style.height = `${y}px`;
    height = y;
  }

  // Spans of one lane that overlap stand in rows of their own; returns the number of rows.
  function pack(lane) {
    const ends = [];
    for (const event of lane.shown) [event.row, event.home] = [0, lane];
    for (const span of lane.bars.sort((one, other) => one.from.index - other.from.index)) {
      let row = ends.findIndex((end) => end <= span.from.index);
      if (row < 0) row = Math.min(ends.length, MOST_ROWS - 1);
      ends[row] = span.to.index;
      span.row = span.from.row = row;
      if (!span.state && span.to.home === lane) span.to.row = row;
    }
    return Math.max(ends.length, 1);
  }

  const inner = () => width - 2 * EDGE, least = () => inner() / extent;
  const most = () => Math.max(least(), byTime ? 60 : 180);
  function clamp() {
    scale = Math.min(Math.max(scale, Math.min(least(), byTime ? Infinity : 130)), most());
    left = Math.max(0, Math.min(left, extent - inner() / scale));
  }
  function fit() {
    left = 0;
    scale = 0;
    clamp();
  }
  function zoom(factor, at = selected ? x(selected) : width / 2) {
    const center = Math.max(0, Math.min(at - EDGE, inner())), where = left + center / scale;
    scale *= factor;
    scale = Math.min(Math.max(scale, least()), most());
    left = where - center / scale;
    clamp();
    draw();
  }
  function pan(pixels) {
    left += pixels / scale;
    clamp();
    draw();
  }

  // -- drawing ----------------------------------------------------------------------------------

  let waiting = 0;
  const later = () => { waiting ||= requestAnimationFrame(draw); };

  function draw() {
    cancelAnimationFrame(waiting);
    waiting = 0;
    const top = box.scrollTop, bottom = top + box.clientHeight;
    const first = bisect(lanes.length, (at) => lanes[at].top + lanes[at].height >= top);
    const inView = lanes.slice(first).filter((lane) => lane.top - HEADING <= bottom);
    const marks = inView.map((lane) => group(lane, CLOSE));
    // Where there are too many to draw at once, more of them share a mark.
    for (let close = CLOSE * 2; marks.flat().length > MOST_MARKS; close *= 2) {
      inView.forEach((lane, at) => { marks[at] = group(lane, close); });
    }
    box.removeAttribute("aria-activedescendant");
    sheet.replaceChildren(...linesOfFaults(),
      ...inView.flatMap((lane, at) => laneNode(lane, marks[at].map(mark))));
    drawRuler();
  }

  function linesOfFaults() {
    const nodes = [];
    let before = -9;
    for (const event of trace.troubles) {
      if (event.tone !== "fault" || event.hidden) continue;
      const at = x(event);
      if (at < 0 || at > width || at - before < 3) continue;
      before = at;
      const node = make("div", { className: "line", "aria-hidden": "true" });
      node.style.cssText = `left:${NAMES + at}px;height:${height}px`;
      nodes.push(node);
    }
    return nodes;
  }

  // A screen reader has the lane's name from the group, and folds by key.
  function laneNode(lane, marks) {
    const text = printable(lane.name), folds = lane.below.length > 0;
    const sign = !folds ? "" : lane.folded ? "▸ " : "▾ ";
    const name = make("div", {
      className: `name depth${lane.depth}${folds ? " folds" : ""}`, "aria-hidden": "true",
      title: folds ? `${text}: a click folds its batches, or shows them` : text,
      onclick: folds ? () => fold(lane) : null,
    }, sign + text);
    const track = make("div", { className: "track", role: "presentation" },
      ...bars(lane), ...marks);
    const node = make("div", {
      className: "lane", role: "group", "aria-label": lane.folded ? `${text}, folded` : text,
    }, name, track);
    node.style.cssText = `top:${lane.top}px;height:${lane.height}px`;
    if (!lane.heading) return [node];
    const heading = make("div", { className: "heading", "aria-hidden": "true" }, lane.group);
    heading.style.top = `${lane.top - HEADING}px`;
    return [heading, node];
  }

  function fold(lane) {
    lane.folded = !lane.folded;
    stack();
    draw();
  }

  function bars(lane) {
    const nodes = [], ends = [];
    for (const span of lane.bars) {
      const from = Math.max(x(span.from), -4), to = Math.min(x(span.to), width + 4);
      if (to < from || to < 0 || from > width || (span.from.hidden && span.to.hidden)) continue;
      // What is no wider than its mark, or drawn over already, would not be seen.
      if (span.state !== 1 && (to - from < CLOSE || to - (ends[span.row] ?? -9) < 3)) continue;
      ends[span.row] = to;
      const node = make("div", { className: `span s${span.state}`, "aria-hidden": "true" });
      node.style.cssText =
        `left:${from}px;width:${Math.max(to - from, 2)}px;top:${span.row * ROW + 5}px`;
      if (x(span.from) < -4 && to > 60) {
        node.textContent = `… ${title(span.from)}`;
      }
      nodes.push(node);
    }
    return nodes;
  }

  // What the marks of a lane stand for: events closer than `close` pixels share one.
  function group(lane, close) {
    const rows = [], all = lane.shown, groups = [];
    for (let at = bisect(all.length, (at) => x(all[at]) >= -close); at < all.length; at++) {
      const event = all[at], px = x(event), before = rows[event.row];
      if (px > width + close) break;
      if (before && px - before.px < close) {
        before.members.push(event);
        if (RANK[event.tone] > RANK[before.worst.tone]) before.worst = event;
      } else {
        if (before) before.room = px - before.px;
        groups.push(rows[event.row] = { px, worst: event, members: [event], room: width - px });
      }
    }
    return groups;
  }

  function mark({ px, worst, members, room }) {
    const [event] = members, many = members.length > 1, chosen = members.includes(selected);
    const node = document.createElement("div");
    node.id = `${name}-${event.index}`;
    node.members = members;
    node.className = `mark ${worst.tone}${many ? " many" : ""}${chosen ? " chosen" : ""}${
      kin.size && members.some((member) => kin.has(member)) ? " kin" : ""}`;
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", String(chosen));
    if (chosen) box.setAttribute("aria-activedescendant", node.id);
    const lasts = event.span && event.span.state !== 2 ? event.span.to.at - event.at : 0;
    const more = many ? ` +${members.length - 1}` : lasts ? ` · ${duration(lasts)}` : "";
    const text = title(worst) + more, said = SIGN[worst.tone] ? `${worst.tone}, ` : "";
    if (room > 34) node.textContent = text;
    const where = `${offset(event.at)} ${printable(event.lane.name)}`;
    node.setAttribute("aria-label", `${where}: ${said}${text}`);
    node.style.cssText = `left:${px}px;top:${event.row * ROW + 3}px;max-width:${room}px`;
    return node;
  }

  function drawRuler() {
    const nodes = byTime ? timeTicks() : orderTicks();
    let before = -99;
    for (const event of trace.troubles) {
      const at = x(event);
      if (event.hidden || at < 0 || at > width || at - before < 9) continue;
      before = at;
      const flag = make("span", { className: `flag ${event.tone}` }, SIGN[event.tone]);
      flag.style.left = `${at}px`;
      nodes.push(flag);
    }
    ruler.replaceChildren(...nodes);
    drawOverview();
  }

  function tick(px, text) {
    const node = make("span", { className: "tick" }, text);
    node.style.left = `${px}px`;
    return node;
  }

  function orderTicks() {
    const nodes = [];
    let before = -1, band = -9;
    const first = bisect(instants.length, (at) => x(instants[at].last) >= -scale);
    for (let at = first; at < instants.length; at++) {
      const instant = instants[at], from = x(instant.first) - scale / 2;
      if (from > width) break;
      const to = x(instant.last) + scale / 2;
      if (to - band > 5) {
        const node = make("span", { className: "instant" });
        node.style.cssText = `left:${from}px;width:${to - from}px`;
        nodes.push(node);
        band = to;
      }
      const text = offset(instant.at), space = text.length * LETTER + 10;
      if (from > before || (from < 0 && to > space)) {
        nodes.push(tick(Math.max(from, 0), text));
        before = Math.max(from, 0) + space;
      }
      const gap = at && from - (x(instants[at - 1].last) + scale / 2);
      const pause = duration(instant.gap);
      if (gap > pause.length * LETTER) {
        const node = make("span", { className: "gap" }, pause);
        node.style.cssText = `left:${from - gap}px;width:${gap}px`;
        nodes.push(node);
      }
    }
    return nodes;
  }

  function timeTicks() {
    const step = nice(130 / scale), nodes = [], { origin } = instants;
    const from = Math.ceil((origin + left) / step) * step;
    for (let at = from; (at - origin - left) * scale < width; at += step) {
      nodes.push(tick(EDGE + (at - origin - left) * scale, offset(Math.round(at))));
    }
    return nodes;
  }

  function drawOverview() {
    const nodes = [], per = inner() / extent, seen = new Set();
    for (const event of trace.troubles) {
      const px = EDGE + Math.round(places[event.index] * per), key = `${event.tone}${px >> 1}`;
      if (event.hidden || seen.has(key)) continue;
      seen.add(key);
      const node = make("span", { className: event.tone });
      node.style.left = `${px}px`;
      nodes.push(node);
    }
    const view = make("span", { className: "view" });
    const inView = Math.min(inner() / scale, extent);
    view.style.cssText = `left:${EDGE + left * per}px;width:${inView * per}px`;
    overview.replaceChildren(view, ...nodes);
  }

  // -- what is said of an event -----------------------------------------------------------------

  function entry(event) {
    const act = () => select(event);
    const look = { type: "button", className: event.tone, onclick: act };
    return make("li", { event }, make("button", look,
      make("span", { className: "when" }, offset(event.at)),
      make("b", {}, `${SIGN[event.tone] || ""} ${title(event)}`),
      make("span", { className: "where" }, printable(event.lane.name))));
  }

  function entries(all, limit) {
    const nodes = all.slice(0, limit).map(entry);
    if (all.length > limit) nodes.push(make("li", {}, `and ${all.length - limit} more`));
    return nodes;
  }

  function valueNode(value) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    return make("dd", {}, make("pre", {}, lines(text)));
  }

  function tell(members) {
    if (!members.length) {
      details.replaceChildren(make("p", { className: "hint" }, events.length
        ? "Point at an event, or choose one with the arrow keys." : "The trace is empty."));
      return;
    }
    if (members.length > 1) {
      details.replaceChildren(make("h3", {}, `${members.length} events`),
        make("ol", { className: "list" }, ...entries(members, MOST_LISTED)));
      return;
    }
    const [event] = members, facts = make("dl", {});
    const fact = (key, node) => facts.append(make("dt", {}, printable(key)), node);
    fact("at", make("dd", {}, offset(event.at), make("br"), absolute(event.at)));
    if (event.span) fact("lasts", make("dd", {}, lasting(event.span)));
    for (const [key, value] of Object.entries(event.data)) fact(key, valueNode(value));
    const related = relatives(event);
    const tail = related.size < 2 ? [] : [make("h3", {}, "The same message or key"),
      make("ol", { className: "list" }, ...entries([...related], MOST_KIN))];
    details.replaceChildren(
      make("h3", { className: event.tone }, `${SIGN[event.tone] || ""} ${title(event)}`),
      make("p", { className: "where" }, printable(event.lane.name)), facts, ...tail);
  }

  const absolute = (at) => {
    const whole = Math.floor(at / 1000), rest = pad(at - whole * 1000, 3);
    return new Date(trace.start + whole).toISOString().replace("Z", `${rest}Z`);
  };
  const lasting = ({ from, to, state }) => {
    if (state === 2) return "its end is not in the trace";
    return `${duration(to.at - from.at)}, until ${title(to)}${state ? ", which cut it off" : ""}`;
  };

  const namesOf = ({ data }) => {
    const many = Array.isArray(data.messages) ? data.messages : [];
    return [data.id, data.key, ...many.map((id) => String(id).replace(/#\d+$/, ""))]
      .filter((id) => typeof id === "string");
  };
  function relatives(event) {
    const wanted = new Set(namesOf(event));
    if (!wanted.size) return new Set();
    return new Set(events.filter((other) => namesOf(other).some((id) => wanted.has(id))));
  }

  // -- what a person does -----------------------------------------------------------------------

  function select(event, reveal = true) {
    selected = event;
    kin = event ? relatives(event) : new Set();
    if (event && reveal) bring(event);
    draw();
    tell(event ? [event] : []);
    for (const node of list.children) {
      node.firstChild.classList?.toggle("chosen", node.event === event);
    }
  }

  function bring(event) {
    const at = x(event);
    if (at < 20 || at > width - 60) {
      left = places[event.index] - inner() / scale / 2;
      clamp();
    }
    const { home: lane } = event, head = lane.heading ? HEADING : 0;
    if (lane.top - head < box.scrollTop) box.scrollTop = lane.top - head;
    const below = lane.top + lane.height - box.clientHeight;
    if (below > box.scrollTop) box.scrollTop = below;
  }

  function move(step) {
    const at = selected ? shown.indexOf(selected) + step : step > 0 ? 0 : shown.length - 1;
    if (shown[at]) select(shown[at]);
  }
  function seek(step) {
    const all = trace.troubles.filter((event) => !event.hidden);
    const from = selected ? selected.index : step > 0 ? -1 : Infinity;
    const next = step > 0 ? all.find((event) => event.index > from)
      : all.findLast((event) => event.index < from);
    if (next) select(next);
  }
  function changeLane(step) {
    if (!selected) return move(1);
    const lane = lanes[lanes.indexOf(selected.home) + step];
    if (!lane) return;
    const at = bisect(lane.shown.length, (i) => lane.shown[i].index >= selected.index);
    select(lane.shown[Math.min(at, lane.shown.length - 1)]);
  }
  function turn(time) {
    byTime = time;
    axis.forEach((node, at) => node.setAttribute("aria-pressed", String(!!at === time)));
    place();
    fit();
    if (selected) bring(selected);
    draw();
  }
  function showText() {
    const on = root.classList.toggle("as-text");
    asText.setAttribute("aria-pressed", String(on));
    if (on) asText.focus();
    else resize();
  }

  function filter() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    haystack ||= events.map((event) =>
      `${event.kind} ${event.lane.name} ${JSON.stringify(event.data)}`.toLowerCase());
    for (const event of events) {
      event.hidden = !words.every((word) => haystack[event.index].includes(word));
    }
    shown = events.filter((event) => !event.hidden);
    found.textContent = words.length ? `${shown.length} of ${events.length}` : "";
    if (selected?.hidden) select(null);
    arrange();
  }
  function arrange() {
    place();
    stack();
    fit();
    draw();
  }
  function resize() {
    const wide = box.clientWidth - NAMES;
    if (wide <= 0) return;
    const all = scale <= Math.min(least(), 130) * 1.001;
    width = wide;
    if (all) fit();
    clamp();
    draw();
  }

  const acts = {
    ArrowRight: (e) => (e.shiftKey ? pan(width / 4) : move(1)),
    ArrowLeft: (e) => (e.shiftKey ? pan(-width / 4) : move(-1)),
    ArrowDown: () => changeLane(1), ArrowUp: () => changeLane(-1),
    Home: () => shown.length && select(shown[0]),
    End: () => shown.length && select(shown[shown.length - 1]),
    f: () => {
      const home = selected?.home;
      const lane = trace.lanes.find((each) => each === home || each.below.includes(home));
      if (lane?.below.length) fold(lane);
    },
    n: () => seek(1), p: () => seek(-1), t: showText, Escape: () => select(null),
    "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6),
    0: () => { fit(); draw(); }, "/": () => field.focus(),
  };
  box.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !Object.hasOwn(acts, e.key)) return;
    e.preventDefault();
    acts[e.key](e);
  });
  field.addEventListener("input", filter);
  field.addEventListener("keydown", (e) => {
    if (e.key === "Escape" || e.key === "Enter") box.focus();
  });

  box.addEventListener("wheel", (e) => {
    const at = e.clientX - box.getBoundingClientRect().left - NAMES;
    if (at < 0 || !(isPage || e.ctrlKey || root.contains(document.activeElement))) return;
    e.preventDefault();
    const unit = e.deltaMode ? 30 : 1;
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan((e.deltaX || e.deltaY) * unit);
    else zoom(Math.exp(Math.max(-1, Math.min(1, -e.deltaY * unit * 0.003))), at);
  }, { passive: false });
  box.addEventListener("scroll", later);

  let grip = null;
  box.addEventListener("pointerdown", (e) => {
    const { clientX: x, clientY: y } = e;
    if (e.button === 0) grip = { x, y, left, top: box.scrollTop, moved: false };
  });
  box.addEventListener("pointermove", (e) => {
    if (!(e.buttons & 1)) grip = null;
    if (!grip) return;
    const dx = e.clientX - grip.x, dy = e.clientY - grip.y;
    if (!grip.moved && Math.hypot(dx, dy) < 5) return;
    if (!grip.moved) box.setPointerCapture(e.pointerId);
    grip.moved = true;
    left = grip.left - dx / scale;
    box.scrollTop = grip.top - dy;
    clamp();
    later();
  });
  box.addEventListener("click", (e) => {
    const dragged = grip?.moved;
    grip = null;
    if (dragged || e.target.closest(".name")) return;
    const members = e.target.closest(".mark")?.members;
    if (!members) select(null);
    else if (members.length === 1) select(members[0], false);
    else {
      select(members.find((event) => SIGN[event.tone]) || members[0], false);
      tell(members);
    }
  });
  box.addEventListener("pointerover", (e) => {
    const members = !grip?.moved && e.target.closest(".mark")?.members;
    if (members) tell(members);
  });
  box.addEventListener("pointerout", (e) => {
    if (e.target.closest(".mark") && !e.relatedTarget?.closest?.(".mark, aside")) {
      tell(selected ? [selected] : []);
    }
  });
  overview.addEventListener("pointerdown", (e) => {
    const at = e.clientX - overview.getBoundingClientRect().left;
    left = ((at - EDGE) / inner()) * extent - inner() / scale / 2;
    clamp();
    draw();
  });

  list.append(...entries(trace.troubles, MOST_LISTED));
  tell([]);
  width = Math.max(box.clientWidth - NAMES, 1);
  arrange();
  if (!isPage) grid.style.height = `${Math.max(320, Math.min(560, height + 60))}px`;
  new ResizeObserver(resize).observe(box);
}

document.querySelectorAll("section.trace").forEach(mount);
