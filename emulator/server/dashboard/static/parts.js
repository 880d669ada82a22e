// Parts of the dashboard's pages, on `make` of the trace's text.js.
//
// Whatever comes from the server goes through `el` into the page: as text, with what would not show
// as it is escaped. Nothing makes markup of it.

const SPOKEN = ["title", "aria-label", "placeholder"];

function el(tag, properties, ...children) {
  const given = Object.entries(properties || {})
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => [name, SPOKEN.includes(name) ? printable(String(value)) : value]);
  return make(tag, Object.fromEntries(given), ...nodes(children));
}

const nodes = (children) => children.flat(Infinity)
  .filter((child) => child !== undefined && child !== null && child !== false)
  .map((child) => (child instanceof Node ? child : lines(String(child))));

const count = (number, one, many) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many || `${one}s`}`;
const plain = (number) => number.toLocaleString("en");

// -- times ---------------------------------------------------------------------------------------

// Microseconds since the epoch of a time as the server writes it, and back.
const micros = (text) => Date.parse(`${text.slice(0, 23)}Z`) * 1000 + Number(text.slice(23, 26));
const clockText = (text) => text.slice(0, 23).replace("T", " ").replace(/\.000$/, "");

function time(text) {
  return text ? el("time", { dateTime: text, title: text }, clockText(text)) : "–";
}

// A time, and how long from now it is.
function dueTime(text, now) {
  if (!text || !now) return time(text);
  const left = micros(text) - micros(now);
  return [time(text), el("small", {}, left > 0 ? ` in ${duration(left)}` : " now")];
}

// -- parts ---------------------------------------------------------------------------------------

function button(label, act, { name, kind, disabled, pressed, key } = {}) {
  return el("button", {
    type: "button", className: kind || "", onclick: act, disabled: !!disabled,
    "aria-label": name, "aria-pressed": pressed === undefined ? undefined : String(pressed),
    "data-key": key,
  }, label);
}

const badge = (text, tone = TONES[text] || "") => el("span", { className: `badge ${tone}` }, text);
const TONES = {
  complete: "done", done: "done", errored: "bad", failed: "bad", terminated: "lost", lost: "lost",
  cancelled: "bad", running: "run", paused: "hold", waitingForPause: "hold", waiting: "wait",
  delayed: "wait", queued: "wait", sleeping: "wait", open: "run", exception: "bad", crashed: "lost",
};

// A text that may be long, or anything.
const value = (text, name) => el("pre", { className: "value", tabIndex: 0, "aria-label": name,
  role: "group" }, text === "" ? "(empty)" : text);

// What there is in rows; the region can be reached and scrolled by keyboard.
function table(name, heads, rows, empty = "Nothing here.") {
  if (!rows.length) return el("p", { className: "empty" }, empty);
  return el("div", { className: "scroll", role: "region", tabIndex: 0, "aria-label": name },
    el("table", {},
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows)));
}

const row = (key, ...cells) => el("tr", { "data-key": key },
  cells.map((cell) => (cell?.nodeName === "TD" || cell?.nodeName === "TH" ? cell
    : el("td", {}, cell))));
const number = (many) => el("td", { className: "number" }, plain(many));
const heading = (...children) => el("th", { scope: "row" }, ...children);

function facts(...pairs) {
  return el("dl", { className: "facts" }, pairs
    .filter(([, shown]) => shown !== undefined && shown !== null)
    .map(([name, shown]) => el("div", {}, el("dt", {}, name), el("dd", {}, shown))));
}

// A value that opens to its whole, which is asked for then.
function opening(key, summary, load) {
  const text = opened.get(key);
  const open = async (event) => {
    if (!event.target.open || opened.has(key)) return;
    try {
      opened.set(key, await load());
    } catch (error) {
      opened.set(key, error.message);
    }
    draw();
  };
  return el("details", { ontoggle: open, "data-key": key },
    el("summary", {}, summary),
    text === undefined ? el("p", { className: "empty" }, "…") : value(text, "The whole value"));
}
const opened = new Map();

// -- forms ---------------------------------------------------------------------------------------

const field = (label, input) => el("label", { className: "field" }, el("span", {}, label), input);
const input = (name, properties) => el("input", { name, autocomplete: "off", ...properties });
const area = (name, properties) =>
  el("textarea", { name, rows: 3, spellcheck: false, ...properties });
const choice = (name, values, properties) => el("select", { name, ...properties },
  values.map((each) => {
    const [of, label] = Array.isArray(each) ? each : [each, each];
    return el("option", { value: of }, printable(label));
  }));
const check = (name, label) => el("label", { className: "check" },
  el("input", { name, type: "checkbox" }), label);

// A form whose fields `act` gets by name, numbers and ticks as such.
function form(key, verb, fields, act) {
  const submit = (event) => {
    event.preventDefault();
    const given = {};
    for (const each of event.target.elements) {
      if (!each.name) continue;
      if (each.type === "checkbox") given[each.name] = each.checked;
      else if (each.type === "number") given[each.name] = each.value ? Number(each.value) : null;
      else given[each.name] = each.value;
    }
    act(given, event.target);
  };
  return el("form", { onsubmit: submit, "data-key": key }, fields,
    el("button", { type: "submit", className: "go" }, verb));
}

const folded = (key, summary, ...children) =>
  el("details", { className: "panel", "data-key": key }, el("summary", {}, summary), ...children);

// Which part of a long list is shown, with links to the others.
function pager(at, total, first, rows) {
  if (total <= rows && !first) return null;
  const last = Math.max(Math.floor((total - 1) / rows) * rows, 0);
  const page = (label, from, on) => (on
    ? el("a", { href: here(at, { from: from || undefined }) }, label)
    : el("span", { className: "off" }, label));
  return el("nav", { className: "pager", "aria-label": "Pages" },
    page("First", 0, first > 0), page("Previous", Math.max(first - rows, 0), first > 0),
    el("span", {}, total ? `${plain(Math.min(first + 1, total))}–${
      plain(Math.min(first + rows, total))} of ${plain(total)}` : "none"),
    page("Next", first + rows, first + rows < total), page("Last", last, first < last));
}
