// SPDX-License-Identifier: MIT
// How fast is BullMQ? Called by bench_redis:
//
//     node bullmq.js keepLastIfActive THREADS MILLISECONDS SOCKET
//
// So many promises add jobs for half of the time, each with an id for
// deduplication; then a worker with this concurrency processes all of them. Prints
// the number of jobs, and the seconds of wall and of processor time.
'use strict';
const { Queue, Worker } = require('bullmq');

const [mode, threads, span, path] = process.argv.slice(2);
if (mode !== 'keepLastIfActive' || !path) {
  console.error('usage: keepLastIfActive THREADS MILLISECONDS SOCKET');
  process.exit(2);
}
const connection = { path, maxRetriesPerRequest: null };

async function addUntil(queue, number, until) {
  let n = 0;
  for (; n === 0 || performance.now() < until; n++) {
    const pod = String(number * 1000000000 + n).padStart(12, '0');
    const id = `namespace-${String(n % 1000).padStart(4, '0')}/pod-${pod}`;
    await queue.add('key', id, {
      deduplication: { id, keepLastIfActive: true },
      removeOnComplete: true,
    });
  }
  return n;
}

async function main() {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  const begin = performance.now();
  const cpu = process.cpuUsage();
  const until = begin + span / 2;
  const added = await Promise.all(
    Array.from({ length: Number(threads) }, (_, i) => addUntil(queue, i, until)));
  const jobs = added.reduce((a, b) => a + b, 0);

  let done = 0;
  let worker;
  await new Promise((resolve, reject) => {
    worker = new Worker('bench', async () => {}, {
      connection, concurrency: Number(threads) });
    worker.on('completed', () => { if (++done === jobs) resolve(); });
    worker.on('error', reject);
  });
  const used = process.cpuUsage(cpu);
  console.log(jobs, (performance.now() - begin) / 1000,
    (used.user + used.system) / 1e6);
  await worker.close();
  await queue.close();
}

main().catch((e) => { console.error(e); process.exit(1); });
