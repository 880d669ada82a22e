// The local JavaScript runtime's side of `python -m tests.benchmarks.queues`: the same work, done by
// Miniflare from the folder given. Prints messages per second.
import { createRequire } from 'node:module';
import path from 'node:path';

const [folder, total] = [process.argv[2], Number(process.argv[3])];
const { Miniflare } = createRequire(path.resolve(folder, 'package.json'))('miniflare');
// Miniflare's broker keeps a timer per message and takes no more than 10,000 of them at once.
const PER_REQUEST = 2000;

const script = `
let consumed = 0;
export default {
  async fetch(request, env) {
    const count = Number(new URL(request.url).searchParams.get('count'));
    for (let i = 0; i < count; i += 100)
      await env.JOBS.sendBatch(Array.from({ length: 100 }, (_, k) => ({ body: { i: i + k } })));
    return Response.json(consumed);
  },
  async queue(batch) {
    for (const message of batch.messages) {
      if (message.body.i >= 0) consumed++;
      message.ack();
    }
  },
};`;

const miniflare = new Miniflare({
  modules: true,
  cf: false,
  script,
  compatibilityDate: '2026-04-01',
  queueProducers: { JOBS: 'jobs' },
  queueConsumers: { jobs: { maxBatchSize: 100, maxBatchTimeout: 1 } },
});
const ask = async (count) => {
  for (;;) {
    const response = await miniflare.dispatchFetch(`http://localhost/?count=${count}`);
    const text = await response.text();
    if (response.status === 200) return Number(text);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

await ask(0);
const start = performance.now();
for (let sent = 0; sent < total; sent += PER_REQUEST) await ask(PER_REQUEST);
while ((await ask(0)) < total) await new Promise((resolve) => setTimeout(resolve, 5));
console.log((total * 1000) / (performance.now() - start));
await miniflare.dispose();
