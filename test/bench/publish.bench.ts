/**
 * Measures the cost of an event for Redis.
 *
 * Compares the publish script with a plain XADD of the body as the only field. Script calls have 1, 4 and 16 deliveries of one event.
 * Both use the same Redis with `appendfsync always`. Prints the CPU time of Redis per event as the median of interleaved rounds. The
 * ratio does not depend on the speed of the machine.
 *
 * usage: node test/bench/publish.bench.ts [publish.lua …]; also measures the given versions of the script
 */
import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";
import { encodeCall } from "../../src/bus/publish/publish-call.ts";
import { encodeLimits, QUARANTINE_LIMITS } from "../../src/bus/quarantine/quarantine-record.ts";
import type { OutgoingEvent } from "../../src/event/event.ts";
import { loadScript } from "../../src/lib/lua.ts";
import { startBenchRedis } from "./redis.ts";

const ROUNDS = 5;
const EVENTS = 6_400;
/** Concurrent deliveries, like those of 64 connections that each wait for a response. */
const EVENTS_IN_FLIGHT = 64;
const BODY = JSON.stringify({ action: "opened", text: "x".repeat(400) });
const SHIPPED = new URL("../../src/bus/publish/publish.lua", import.meta.url);
const scripts = [SHIPPED, ...process.argv.slice(2).map((path) => pathToFileURL(path))].map(loadScript);
const settings = { mustWrite: false, quarantineLimits: encodeLimits(QUARANTINE_LIMITS) };

await using redis = await startBenchRedis();
const client = new Redis({ path: redis.socket });
// The client reports errors until the server listens, and then connects.
client.on("error", () => {});
try {
  const subjects = [
    { name: "XADD, one field", run: () => pump(1, () => xadd("baseline", "data", BODY)) },
    { name: "XADD, seven fields", run: () => pump(1, (n) => xadd("floor7", ...fieldsOf(`e${n}`))) },
    ...scripts.flatMap((script, at) =>
      [1, 4, 16].map((groups) => ({
        name: `${at === 0 ? "shipped" : process.argv[at + 1]}, calls of ${groups}`,
        run: () => pump(groups, () => client.call("EVALSHA", script.sha, ...callOf(groups))),
      })),
    ),
  ];
  for (const { text } of scripts) await client.script("LOAD", text);
  const micros = new Map(subjects.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { name, run } of subjects) {
      await client.flushall();
      const before = await cpuMicros();
      await run();
      // The first round is a warm-up.
      if (round > 0) micros.get(name)?.push(((await cpuMicros()) - before) / EVENTS);
    }
  }
  const baseline = median(micros.get("XADD, one field") ?? []);
  for (const [name, all] of micros) {
    const middle = median(all);
    const spread = `${Math.min(...all).toFixed(1)}–${Math.max(...all).toFixed(1)}`;
    process.stdout.write(
      `${name.padEnd(40)} ${middle.toFixed(1)} µs (${spread}), ${(middle / baseline).toFixed(2)} times the baseline\n`,
    );
  }
} finally {
  client.disconnect();
}

/** Sends the given number of events with some calls in parallel. */
async function pump(eventsPerCall: number, call: (n: number) => Promise<unknown>): Promise<void> {
  let sent = 0;
  await Promise.all(
    Array.from({ length: EVENTS_IN_FLIGHT / eventsPerCall }, async () => {
      while (sent < EVENTS) {
        sent += eventsPerCall;
        await call(sent);
      }
    }),
  );
}

function xadd(key: string, ...fields: string[]): Promise<unknown> {
  return client.call("XADD", key, "MAXLEN", "~", "100000", "*", ...fields);
}

function callOf(groups: number): (string | Buffer)[] {
  return encodeCall(
    Array.from({ length: groups }, () => {
      const event = eventOf();
      return { policy: "86400000 r 100000 r", events: [event], bytes: event.bytes };
    }),
    settings,
  );
}

function eventOf(): OutgoingEvent {
  const id = randomBytes(16).toString("base64url");
  return {
    id,
    type: "push",
    topic: "app.github.hooks.push",
    item: 0,
    identity: createHash("sha256").update(id).digest("base64url").slice(0, 22),
    digest: "AAAAAAAAAAA",
    fields: fieldsOf(id),
    bytes: BODY.length + 200,
  };
}

function fieldsOf(id: string): string[] {
  return [
    ...["specversion", "1.0", "id", id, "source", "/apps/app_01/hooks", "type", "push"],
    ...["time", "2026-01-01T00:00:00.000Z", "datacontenttype", "application/json", "data", BODY],
  ];
}

/** Returns the CPU time of the Redis process. The first field of /proc/<pid>/schedstat is in nanoseconds. */
async function cpuMicros(): Promise<number> {
  const [onCore] = (await readFile(`/proc/${redis.process.pid}/schedstat`, "utf8")).split(" ");
  return Number(onCore) / 1000;
}

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
}
