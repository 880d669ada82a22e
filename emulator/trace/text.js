// What timeline.js is written with: texts as they may be shown, times, and parts of the page.
//
// Everything from the trace goes through here into the page: as text (`make`), with what would not
// show as it is escaped (`printable`).

const UNITS = [[864e8, "d"], [36e8, "h"], [6e7, "min"], [1e6, "s"], [1e3, "ms"], [1, "µs"]];
const STEPS = [ // in seconds
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
];
const CONTROL =
  /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\p{Surrogate}/gu;

const escaped = (found) => {
  const code = found.codePointAt(0);
  return code < 256 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`;
};
const hex = (code, digits) => code.toString(16).padStart(digits, "0");
const printable = (text) => text.replace(CONTROL, escaped);
const lines = (text) => text.replace(/\r\n/g, "\n")
  .replace(CONTROL, (found) => (found === "\n" || found === "\t" ? found : escaped(found)));

function offset(at) {
  const all = Math.abs(at), days = Math.floor(all / 864e8), rest = all % 864e8;
  const [h, m, s] = [rest / 36e8, (rest / 6e7) % 60, (rest / 1e6) % 60].map(Math.floor);
  const part = all % 1e6;
  const digits = part % 1e3 ? pad(part, 6) : pad(part / 1e3, 3);
  const day = days ? `${days}d ${pad(h, 2)}` : `${h}`;
  return `${at < 0 ? "-" : "+"}${day}:${pad(m, 2)}:${pad(s, 2)}.${digits}`;
}
const pad = (number, digits) => String(number).padStart(digits, "0");

// In two units at most: `3 d`, `1 h 30 min`, `1.5 ms`.
function duration(length) {
  const at = UNITS.findIndex(([size]) => length >= size);
  if (at < 0) return "0 s";
  const [size, name] = UNITS[at];
  if (at > 2) return `${+(length / size).toFixed(3)} ${name}`;
  const [part, less] = UNITS[at + 1], all = Math.round(length / part), count = size / part;
  const rest = all % count;
  return `${Math.floor(all / count)} ${name}${rest ? ` ${rest} ${less}` : ""}`;
}

function make(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.includes("-") || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
}

// The first index from which `test` holds; it holds for all after it.
function bisect(length, test) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// What an event is called.
const title = ({ kind, label }) =>
  printable(kind === "fault" ? label : `${kind} ${label}`.trim());

// The length of a round step on an axis of time, at least `length` microseconds.
function nice(length) {
  if (length <= 5e5) {
    const power = 10 ** Math.floor(Math.log10(Math.max(length, 1)));
    return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= length);
  }
  const step = STEPS.find((seconds) => seconds * 1e6 >= length);
  if (step) return step * 1e6;
  const days = length / 864e8, power = 10 ** Math.max(Math.floor(Math.log10(days)), 0);
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= days) * 864e8;
}
