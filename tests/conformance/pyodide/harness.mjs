// Runs probes in real Pyodide: node harness.mjs JOB.json, where the job names the folders of the
// packages, the SDK's sources, the flags, the probes, and the file to write the results to.
import { readFileSync, writeFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { makeFakes, makeDescribe } from "./fakes.mjs";

process.on("uncaughtException", () => {});
process.on("unhandledRejection", () => {});

const job = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { loadPyodide } = await import(pathToFileURL(join(job.pyodide, "pyodide.mjs")));
const pyodide = await loadPyodide({
  indexURL: job.pyodide + "/",
  stdout: () => {},
  stderr: () => {},
  env: { TZ: "UTC", HOME: "/home/pyodide" },
});

// The SDK's own sources, below site-packages.
const site = pyodide.runPython("import site; site.getsitepackages()[0]");
function copy(from, to) {
  for (const name of readdirSync(from)) {
    if (name === "__pycache__" || name.endswith?.(".pth")) continue;
    const source = join(from, name), target = `${to}/${name}`;
    if (statSync(source).isDirectory()) {
      pyodide.FS.mkdirTree(target);
      copy(source, target);
    } else if (/\.py$/.test(name)) {
      pyodide.FS.writeFile(target, readFileSync(source));
    }
  }
}
copy(job.sdk, site);
if (job.version) pyodide.runPython(`import pyodide; pyodide.__version__ = ${JSON.stringify(job.version)}`);

// The SDK's own JavaScript; anything else is as unknown as it is to the runtime.
async function importModule(name) {
  const own = /^python_modules\/(.*\.js)$/.exec(name);
  if (!own) throw new Error(`No such module "${name}".`);
  const source = readFileSync(join(job.sdk, own[1]), "base64");
  return await import(`data:text/javascript;base64,${source}`);
}

// What the runtime gives the SDK.
const describe = makeDescribe(pyodide);
const fakes = makeFakes(describe);
pyodide.registerJsModule("_cloudflare_compat_flags", job.flags);
pyodide.registerJsModule("_pyodide_entrypoint_helper", {
  cloudflareWorkersModule: { env: fakes.env(), waitUntil: fakes.describe },
  cloudflareSocketsModule: {},
  doAnImport: importModule,
  patchWaitUntil: () => {},
});

pyodide.FS.writeFile(`${site}/probe_showing.py`, readFileSync(job.showing));
const runProbe = pyodide.runPython("from probe_showing import run_probe; run_probe");

async function show(setup, source) {
  const names = pyodide.toPy({});
  names.set("fakes", fakes);
  names.set("describe", describe);
  // A probe whose promise nothing settles (a bug of Pyodide's) must not stop the others. Turns of
  // the loop are counted, not time alone, so that a busy machine changes nothing.
  let turns = 60, timer;
  const late = new Promise((done) => {
    timer = setInterval(() => { if (--turns === 0) done("(never ends)"); }, 10);
  });
  const shown = await Promise.race([runProbe(setup, source, names, describe), late]);
  clearInterval(timer);
  names.destroy();
  return shown;
}

const results = {};
for (const { family, setup, probes } of job.families) {
  results[family] = {};
  await runProbe(setup, "None", pyodide.toPy({ fakes, describe }), describe); // imports take time
  for (const source of probes) {
    // Pyodide 0.26 under Node now and then loses an exception; not twice in a row.
    for (let tries = 0; tries < 3; tries++) {
      results[family][source] = await show(setup, source);
      if (!results[family][source].includes("error return without exception set")) break;
    }
  }
}
writeFileSync(job.results, JSON.stringify(results));
process.exit(0);
