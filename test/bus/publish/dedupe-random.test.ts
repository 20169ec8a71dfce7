import { expect, it } from "vitest";
import type { Receipt } from "../../../src/bus/publish/publish-batch.ts";
import {
  LONG_WRITE_TIMEOUT,
  now,
  openedBus,
  openTestRedis,
  testChannel,
  testEvent,
  testPolicy,
  testPublish,
} from "../support.ts";

const { server, publish } = openedBus();

/** Creates a seeded generator of random integers below a bound. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

it("deduplication of random deliveries gives the same results as a simple model in memory", async () => {
  await using another = await openTestRedis(server.url, LONG_WRITE_TIMEOUT);
  const publishers = [publish, testPublish(another)];
  const seen = new Set<string>();
  for (let seed = 1; seed <= 20; seed++) {
    const random = numbers(seed);
    const channel = testChannel();
    const entries = new Map<string, { digest: string; entryId: string }>();
    const marks = new Map<string, string>();
    for (let call = 0; call < 40; call++) {
      const deliveries = Array.from({ length: 1 + random(5) }, () => ({
        channel,
        events: Array.from({ length: random(4) === 0 ? 1 + random(30) : 1 }, () =>
          testEvent(channel, `id-${random(300)}`, {
            type: `type-${random(3)}`,
            data: `data-${random(12) === 0 ? 1 : 0}`,
            remembered: random(20) > 0,
          }),
        ),
        // All windows are longer than the test, and each uses its own slicing.
        policy: { ...testPolicy, dedupeWindowMs: [86_400_000, 604_800_000, 7_200_000][random(3)] ?? 0 },
        ...(random(4) === 0 && {
          signed: { identity: `${random(40)}`.padEnd(22, "-"), digest: `${random(2)}`.padEnd(11, "-") },
        }),
      }));
      const publisher = publishers[random(2)] ?? publish;
      const results = await Promise.all(deliveries.map((delivery) => publisher(delivery, now)));
      for (const [i, { events, signed }] of deliveries.entries()) {
        const mark = signed && (marks.get(signed.identity) ?? signed.digest);
        if (signed && mark !== undefined) marks.set(signed.identity, mark);
        for (const [n, { topic, identity, digest }] of events.entries()) {
          const receipt = results[i]?.receipts[n] as Receipt;
          seen.add(receipt.status);
          const key = `${topic} ${identity}`;
          const known = identity === "" ? undefined : entries.get(key);
          const context = { seed, call, i, n };
          if (known !== undefined) {
            const { entryId } = known;
            const expected =
              known.digest === digest ? { status: "duplicate", entryId } : { status: "conflict" };
            expect({ ...context, ...receipt }).toEqual({ ...context, ...expected });
            continue;
          }
          const expected = mark !== signed?.digest ? "replayed" : "published";
          expect({ ...context, status: receipt.status }).toEqual({ ...context, status: expected });
          if ("entryId" in receipt && identity !== "") entries.set(key, { digest, entryId: receipt.entryId });
        }
      }
    }
    const topics = new Set([...entries.keys()].map((key) => key.split(" ")[0] ?? ""));
    for (const topic of topics) {
      const stored = new Set((await server.client.xrange(topic, "-", "+")).map(([id]) => id));
      for (const [key, { entryId }] of entries)
        if (key.startsWith(`${topic} `)) expect(stored.has(entryId)).toBe(true);
    }
  }
  expect([...seen].sort()).toEqual(["conflict", "duplicate", "published", "replayed"]);
});
