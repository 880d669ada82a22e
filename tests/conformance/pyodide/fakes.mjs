// JavaScript's side of the probes: values of every kind, and bindings with the real constructor
// names that tell what reached them. `twins.py` has the same for the emulator.

export function makeDescribe(pyodide) {
  const { PyProxy } = pyodide.ffi;
  function describe(value) {
    if (value === undefined) return "undefined";
    if (value === null) return "null";
    switch (typeof value) {
      case "string": return JSON.stringify(value);
      case "bigint": return `${value}n`;
      case "symbol": return String(value);
      case "boolean": case "number": return String(value);
    }
    if (value instanceof PyProxy) return `PyProxy(${value.type.split(".").at(-1)})`;
    if (typeof value === "function") return `function ${value.name}`;
    return describeObject(value);
  }
  function list(items) { return Array.from(items, describe).join(", "); }
  function describeObject(value) {
    const name = value.constructor?.name ?? "";
    if (Array.isArray(value)) return `[${list(value)}]`;
    if (value instanceof Map) {
      return `${name}{${Array.from(value, ([k, v]) => `${describe(k)}: ${describe(v)}`).join(", ")}}`;
    }
    if (value instanceof Set) return `Set{${list(value)}}`;
    if (value instanceof Date) return `Date(${value.toISOString()})`;
    if (value instanceof Error) return `${value.name}(${value.message.split("\n")[0]})`;
    if (value instanceof RegExp) return String(value);
    if (value instanceof ArrayBuffer) return `ArrayBuffer(${list(new Uint8Array(value))})`;
    if (value instanceof DataView) return `DataView(${value.byteLength})`;
    if (ArrayBuffer.isView(value)) return `${name}(${list(value)})`;
    if (typeof value.then === "function") return "Promise";
    const pairs = Object.entries(value).map(([k, v]) => `${k}: ${describe(v)}`).join(", ");
    return `${name === "Object" ? "" : name}{${pairs}}`;
  }
  return describe;
}

export function makeFakes(describe) {
  const told = (...args) => args.map(describe).join(" | ");
  const resolved = (value) => Promise.resolve(value);

  class Thing {
    constructor(n = 1) { this.n = n; this.label = "thing"; }
    get [Symbol.toStringTag]() { return "Thing"; }
    get half() { return this.n / 2; }
    twice(x = this.n) { return x * 2; }
    self() { return this; }
    static make(n) { return new Thing(n); }
  }

  const values = () => ({
    undefined: undefined, null: null, yes: true, no: false, int: 5, negative: -1, float: 1.5,
    whole: 2.0, large: 2 ** 53, safe: 2 ** 53 - 1, huge: 1e300, nan: NaN, infinity: Infinity,
    minus_zero: -0, bigint: 5n, bigger: 2n ** 70n, text: "héllo", empty: "", symbol: Symbol("s"),
    object: { a: 1, b: "x" }, nested: { a: [1, { b: null }], c: { d: undefined } },
    keys: { items: 1, get: 2, keys: 3, from: 4, "a-b": 5, "0": 6 }, blank: {},
    array: [1, "x", null, undefined], none: [], deep: [[1, [2, [3]]]],
    map: new Map([["a", 1], ["b", { c: null }]]), numbered: new Map([[1, "one"], [2, "two"]]),
    keyed: new Map([[{ k: 1 }, "v"]]), set: new Set([1, "x", 2]), objects: new Set([{ a: 1 }]),
    date: new Date(1767323045678), error: new Error("bad"), range: new RangeError("far"),
    type_error: new TypeError("no"), regexp: /ab+/gi, buffer: new Uint8Array([1, 2, 3]).buffer,
    bytes: new Uint8Array([1, 2, 255]), ints: new Int32Array([1, -2]),
    floats: new Float64Array([1.5, 2]), bigs: new BigInt64Array([5n, -5n]),
    shorts: new Uint16Array([1, 65535]), clamped: new Uint8ClampedArray([1, 2]),
    view: new DataView(new ArrayBuffer(2)), thing: new Thing(4), Thing,
    func: function add(a, b) { return a + b; }, tell: told,
    resolved: resolved(7), list_of_objects: [{ a: 1 }, { a: 2 }],
    nothing: Object.create(null),
  });

  class WorkerQueue {
    send(...args) { return resolved(told(...args)); }
    sendBatch(...args) { return resolved(told(...args)); }
    metrics() { return resolved({ backlogCount: 1, oldestMessageTimestamp: null }); }
  }
  class KvNamespace {
    #reads = 0;
    get reads() { return ++this.#reads; }
    get(key, ...options) { return resolved(key === "missing" ? null : told(key, ...options)); }
    put(...args) { return resolved(undefined); }
    list() {
      return resolved({ keys: [{ name: "k", metadata: null }], list_complete: true, cacheStatus: null });
    }
    getWithMetadata() { return resolved({ value: null, metadata: { a: [1] }, cacheStatus: null }); }
    buffer() { return resolved(new Uint8Array([1, 2]).buffer); }
    map() { return resolved(new Map([["a", { b: 1 }], ["c", null]])); }
    date() { return new Date(1767323045678); }
    echo(value) { return value; }
    tell(...args) { return told(...args); }
    fail() { throw new TypeError("no such key"); }
    reject() { return Promise.reject(new RangeError("too far")); }
    strange() { throw "a text"; }
    func() { return resolved((...args) => told(...args)); }
    thing() { return new Thing(3); }
    things() { return [new Thing(1), new Thing(2)]; }
    objects() { return resolved({ objects: [new Thing(1)], truncated: false }); }
  }
  class D1PreparedStatement {
    #bound;
    constructor(bound) { this.#bound = bound; }
    bind(...args) { return new D1PreparedStatement(told(...args)); }
    first(...args) { return resolved(args.length ? told(...args) : null); }
    all() {
      return resolved({ success: true, results: [{ id: 1, name: null, bound: this.#bound }],
                        meta: { duration: 0.5, rows_read: 1 } });
    }
    raw() { return resolved([[1, null], [2, "x"]]); }
  }
  class D1Database {
    prepare(query) { return new D1PreparedStatement(query); }
    batch(statements) { return resolved(statements.map((one) => one.constructor.name)); }
    exec(...args) { return resolved({ count: 1, duration: 0 }); }
  }
  class DurableObjectId {
    #name;
    constructor(name) { this.#name = name; }
    get name() { return this.#name; }
    toString() { return "00ff"; }
    equals(other) { return this.#name === other.name; }
  }
  class Fetcher {
    get name() { return "stub"; }
    echo(value) { return resolved(value); }
    tell(...args) { return resolved(told(...args)); }
    fail() { return Promise.reject(new Error("remote")); }
    fetch(url, init) {
      const asked = typeof url === "string" ? url : url.url;
      return resolved(new Response(asked, { status: 201, headers: { "x-a": "1" } }));
    }
  }
  class DurableObjectNamespace {
    idFromName(name) { return new DurableObjectId(name); }
    newUniqueId() { return new DurableObjectId(undefined); }
    get(id) { return new Fetcher(); }
    getByName(name) { return new Fetcher(); }
    jurisdiction(name) { return new DurableObjectNamespace(); }
  }
  class WorkflowInstance {
    get id() { return "wf-1"; }
    status() { return resolved({ status: "running", output: null, error: null }); }
    pause() { return resolved(undefined); }
    sendEvent(...args) { return resolved(told(...args)); }
  }
  class WorkflowImpl {
    get(id) { return resolved(new WorkflowInstance()); }
    create(...args) { return resolved(new WorkflowInstance()); }
    createBatch(list) { return resolved([new WorkflowInstance()]); }
  }
  class QueueMessage {
    #body;
    constructor(body) { this.#body = body; }
    get id() { return "m1"; }
    get attempts() { return 1; }
    get timestamp() { return new Date(1767323045678); }
    get body() { return this.#body; }
    ack() {}
    retry(...args) { if (args.length) throw new Error(told(...args)); }
  }
  class QueueController {
    #messages = [new QueueMessage({ key: 1, none: null, items: [1] }), new QueueMessage(null)];
    get queue() { return "orders"; }
    get messages() { return this.#messages; }
    get metadata() { return { metrics: { backlogCount: 0 } }; }
    ackAll() {}
    retryAll(...args) { if (args.length) throw new Error(told(...args)); }
  }
  class Hyperdrive { get host() { return "db"; } connect(...args) { return told(...args); } }
  class TestController {}
  class SqlStorageCursor {
    #rows = [{ id: 1, val: null }, { id: 2, val: "x" }];
    get columnNames() { return ["id", "val"]; }
    get rowsRead() { return 2; }
    toArray() { return this.#rows; }
    one() { return this.#rows[0]; }
    [Symbol.iterator]() { return this.#rows[Symbol.iterator](); }
  }
  class SqlStorage { exec(...args) { return new SqlStorageCursor(); } }
  class DurableObjectStorage {
    get sql() { return new SqlStorage(); }
    get(key) { return resolved(key === "missing" ? undefined : told(key)); }
    put(...args) { return resolved(told(...args)); }
    list() { return resolved(new Map([["a", 1], ["b", { c: null }]])); }
    setAlarm(...args) { return resolved(told(...args)); }
    transaction(closure) { return Promise.resolve(closure(new DurableObjectStorage())); }
  }
  class DurableObjectState {
    get storage() { return new DurableObjectStorage(); }
    get id() { return new DurableObjectId("n"); }
    blockConcurrencyWhile(closure) { return Promise.resolve(closure()); }
    waitUntil(promise) { return told(promise); }
  }
  class WorkflowStep {
    async do(name, ...rest) {
      const body = rest.at(-1);
      const context = { step: { name, count: 1 }, attempt: 1, config: rest.length > 1 ? rest[0] : {} };
      try {
        return await body(context);
      } catch (error) { // as RPC delivers it: a class of its own is part of the message only
        if (error.name in globalThis) throw error;
        throw new Error(`${error.name}: ${error.message}`);
      }
    }
    sleep(...args) { return resolved(told(...args)); }
    sleepUntil(...args) { return resolved(told(...args)); }
    waitForEvent(...args) { return resolved({ payload: told(...args), type: "t" }); }
  }

  const env = () => ({
    QUEUE: new WorkerQueue(), KV: new KvNamespace(), DB: new D1Database(), SERVICE: new Fetcher(),
    OBJECTS: new DurableObjectNamespace(), FLOW: new WorkflowImpl(), HYPER: new Hyperdrive(),
    TEXT: "hello", NUMBER: 1.5, WHOLE: 2, FLAG: true, NULL: null, OBJECT: { b: { c: 1 } },
    LIST: [1, { a: 1 }],
  });

  return {
    values, env, describe: told, same: (value) => value, batch: () => new QueueController(),
    state: () => new DurableObjectState(), step: () => new WorkflowStep(),
    controller: () => new TestController(),
    event: () => ({ payload: { a: 1, none: null }, timestamp: new Date(1767323045678),
                    instanceId: "i", workflowName: "w" }),
    call: (f, ...args) => f(...args), catches: (f) => { try { f(); } catch (e) { return describe(e); } },
    raise: (value) => { throw value; }, reject: (value) => Promise.reject(value),
    keep: (value) => { let kept = value; return () => kept; },
    json: (value) => JSON.stringify(value), keys: (value) => Object.keys(value),
    get: (value, key) => value[key], has: (value, key) => key in value,
    type: (value) => typeof value, name: (value) => value.constructor.name,
    awaited: async (value) => describe(await value),
    error: (name, message) => { const e = new Error(message); e.name = name; return e; },
    response: () => new Response("body", { status: 404, statusText: "Nope", headers: [["a", "1"], ["set-cookie", "x=1"], ["set-cookie", "y=2"]] }),
    request: (url = "http://h/p?q=1", init = { headers: { a: "1", b: "2" } }) => new Request(url, init),
    form: () => { const f = new FormData(); f.append("a", "1"); f.append("a", "2"); f.append("b", new Blob(["xy"], { type: "text/plain" }), "n.txt"); return f; },
    blob: () => new Blob(["abc"], { type: "text/plain" }),
    headers: () => new Headers({ a: "1", b: "2" }),
  };
}
