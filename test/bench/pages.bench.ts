/**
 * Measures how long a poll of one 5 MiB page blocks the event loop, if the main thread or a worker thread parses the page.
 *
 * usage: npm run bench:pages
 */
import { createServer } from "node:http";
import { pollingConfigSchema } from "../../src/channels/polling/config/config.ts";
import { createPolledSource, polling } from "../../src/channels/polling/polling.ts";
import type { SourceRun } from "../../src/channels/source.ts";
import { startNormalizeQueue } from "../../src/ingest/worker/normalize-queue.ts";
import { ok } from "../../src/lib/result.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { measure, measureProof } from "./stall.ts";

const ITEMS = 10_000;
const ROUNDS = 5;

const row = (id: number) => ({
  id,
  updatedAt: new Date(id * 1000).toISOString(),
  person: { name: `name ${id}`, tags: ["a", "b", "c"], score: id / 7 },
  text: "x".repeat(370),
});
const page = JSON.stringify({ rows: Array.from({ length: ITEMS }, (_, id) => row(id)), next: null });

const server = createServer((_, response) =>
  response.writeHead(200, { "content-type": "application/json" }).end(page),
);
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = server.address();
const port = typeof address === "object" && address ? address.port : 0;

await using elsewhere = startNormalizeQueue({
  program: new URL("../../src/gateway/normalize-thread.ts", import.meta.url),
  validatorFor: () => ({ validate: () => undefined }),
  newEventId: () => "fresh",
});
const ways = {
  "read by the main thread": async (request: unknown) => ok(polling.readLarge?.(request)),
  "read by a worker thread": elsewhere.readFor(polling),
};
const cases = { "$.rows": "$.rows", "$.rows[*], a query": "$.rows[*]" };

console.log(`page of ${(page.length / 1024 / 1024).toFixed(1)} MiB, ${ITEMS} items, all already seen`);
await measureProof();
for (const [name, itemsPath] of Object.entries(cases)) {
  const config = pollingConfigSchema.parse({
    request: { url: `http://127.0.0.1:${port}/` },
    discriminator: { by: "timestamp", path: "$.updatedAt" },
    itemId: "$.id",
    itemsPath,
    startAt: "now",
    maxResponseBytes: 10 * 1024 * 1024,
  });
  for (const [way, readInWorker] of Object.entries(ways)) {
    const source = createPolledSource({
      outbound: createOutbound({ allowNetworks: ["127.0.0.0/8"] }),
      clock: Date.now,
      random: Math.random,
      wait: async () => {},
      readInWorker,
    });
    const run = {
      channel: { identity: { number: 1, organizationId: "org_1" } },
      config,
      credentials: undefined,
      cursor: undefined,
      startedAtMs: Date.now(),
      signal: new AbortController().signal,
      ingest: () => Promise.reject(new Error("the page has no new items")),
      async moveTo() {},
      opened() {},
      warn() {},
    } as unknown as SourceRun;
    await source.poll(run);
    await measure(`${name}: ${way}`, async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const end = await source.poll(run);
        if (end.kind !== "done") throw new Error(JSON.stringify(end));
      }
    });
  }
}
server.close();
