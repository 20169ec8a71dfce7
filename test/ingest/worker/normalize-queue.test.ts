import { afterAll, describe, expect, it } from "vitest";
import { type LargeRequest, readLargePage } from "../../../src/channels/polling/fetch/large-page.ts";
import { polling } from "../../../src/channels/polling/polling.ts";
import { sse } from "../../../src/channels/sse/sse.ts";
import type { Definition } from "../../../src/event/definition.ts";
import type { VerifiedDelivery } from "../../../src/event/received.ts";
import { createNormalizer, createThreadShares, type Normalizer } from "../../../src/ingest/normalizer.ts";
import { startNormalizeQueue } from "../../../src/ingest/worker/normalize-queue.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import type { JsonSchema } from "../../../src/lib/json-schema/compiled-schema.ts";
import { ok } from "../../../src/lib/result.ts";
import { explainEach } from "../../../src/normalize/explain.ts";
import { type NormalizeDeps, type Normalized, normalize } from "../../../src/normalize/normalize.ts";
import { compileRules } from "../../../src/normalize/rule-set.ts";
import { channel, deliveryOf, rulesOf, type Settings } from "../../normalize/support.ts";
import { itDeep } from "../../support/deep-run.ts";
import { sharedSchemas } from "../../support/schemas.ts";

const { signal } = new AbortController();

const deps: NormalizeDeps = {
  validatorFor: async (schema: JsonSchema, lane: string) => {
    const compiled = await sharedSchemas().compile(schema, { signal, lane });
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
    return compiled.value;
  },
  newEventId: () => "fresh",
};
const program = new URL("../../../src/gateway/normalize-thread.ts", import.meta.url);
const queue = startNormalizeQueue({ ...deps, program });
afterAll(() => queue[Symbol.asyncDispose]());

const xml = (text: string): VerifiedDelivery =>
  deliveryOf(text, { headers: { "content-type": "application/xml" } });
const elements = (count: number): string =>
  `<list>${Array.from({ length: count }, (_, n) => `<row id="${n}"><a>x&amp;y</a></row>`).join("")}</list>`;
const rows = Array.from({ length: 900 }, (_, n) => ({
  id: `r${n}`,
  a: { n: 9007199254740993n - BigInt(n) },
}));
const json = JSON.stringify({ rows }, (_, value) => (typeof value === "bigint" ? Number(value) : value));

/** Replaces buffers of large values with text. */
function asText(normalized: Normalized): Normalized {
  if (normalized.kind !== "normalized") return normalized;
  const events = normalized.events.map(({ large, ...event }) => ({
    ...event,
    fields: large === undefined ? event.fields : event.fields.with(large.at, large.bytes.toString()),
  }));
  return { ...normalized, events };
}

describe("parsing a delivery on the worker thread", () => {
  it.each<[string, readonly Definition[], Settings, VerifiedDelivery]>([
    ["XML", [{ type: "all", idPath: "$.list.row[0]['@id']" }], {}, xml(elements(500))],
    ["broken XML", [{ type: "all", idPath: "$.a" }], {}, xml(`${elements(500)}<`)],
    [
      "items, ids and payloads of JSON",
      [{ type: "all", idPath: "$.id", payloadPath: "$.a" }],
      { itemsPath: "$.rows" },
      deliveryOf(json),
    ],
    [
      "contents without ignored values",
      [{ type: "all", payloadPath: "$.a" }],
      { itemsPath: "$.rows", dedupe: { by: "content", ignore: ["$.a.n"] } },
      deliveryOf(json),
    ],
    [
      "queries",
      [{ type: "r1", typePath: "$..id", idPath: "$.rows[0].id", payloadPath: "$.rows[?@.a.n > 1].id" }],
      {},
      deliveryOf(json),
    ],
    [
      "schemas",
      [
        { type: "fits", idPath: "$.id", schema: { required: ["a"] } },
        { type: "does not", idPath: "$.id", schema: { properties: { a: { type: "string" } } } },
        { type: "never", idPath: "$.id", schema: false },
        { type: "again", idPath: "$.id", schema: { required: ["a"] } },
      ],
      { itemsPath: "$.rows[0:3]" },
      deliveryOf(json),
    ],
  ])("returns the same result as the main thread: %s", async (_, definitions, settings, delivery) => {
    const rules = rulesOf(definitions, settings);
    const here = await normalize(rules, delivery, deps);
    expect(await queue.normalize(rules, delivery)).toEqual(here);
    // The second time, the worker already has the rules and the code.
    expect(await queue.normalize(rules, delivery)).toEqual(here);
    const only = { id: "q", item: null, definitions: [], asNewId: true };
    expect(await queue.normalize(rules, delivery, only)).toEqual(
      await normalize(rules, delivery, deps, only),
    );
  });

  it("leaves the body of the delivery readable on the main thread, even if the body is a slice of a larger buffer", async () => {
    const text = xml(elements(500)).body;
    const around = Buffer.concat([Buffer.alloc(100), text, Buffer.alloc(100)]);
    const body = around.subarray(100, 100 + text.length);
    const rules = rulesOf([{ type: "all", idPath: "$.list.row[0]['@id']" }]);
    const delivery = { ...xml(""), body };
    const normalized = await queue.normalize(rules, delivery);
    expect(normalized).toEqual(await normalize(rules, xml(elements(500)), deps));
    expect(body.equals(text)).toBe(true);
  });

  it("costs the main thread less than a quarter of the CPU time that parsing on the main thread costs", async () => {
    const rules = rulesOf([{ type: "all", idPath: "$.list.row[0]['@id']" }]);
    const delivery = xml(elements(5_000));
    /** Returns the lowest of several measurements, because other work on this thread adds to some of them. */
    const cpuMs = async (work: () => unknown): Promise<number> => {
      let least = Number.POSITIVE_INFINITY;
      for (let i = 0; i < 5; i++) {
        const before = process.threadCpuUsage();
        await work();
        const now = process.threadCpuUsage(before);
        least = Math.min(least, (now.user + now.system) / 1000);
      }
      return least;
    };
    await queue.normalize(rules, delivery);
    const there = await cpuMs(() => queue.normalize(rules, delivery));
    expect(there).toBeLessThan((await cpuMs(() => normalize(rules, delivery, deps))) / 4);
  });

  it.each([
    "application/json",
    "text/plain",
  ])("returns the same result as the main thread for a 2 MB stream event: %s", async (type) => {
    const { config, definitions } = rulesOf([{ type: "all", payloadPath: "$" }]);
    const source = { channel: { ...channel, kind: "sse" }, profile: sse.profile, config, definitions };
    const compiled = compileRules(source);
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
    const headers = { "content-type": type, event: "message", "last-event-id": "7" };
    const delivery = deliveryOf(JSON.stringify("\uFEFFx".repeat(500_000)), { headers, deliveryId: "7" });
    let sentCount = 0;
    const readInWorker: Normalizer = (...requestedTypes) => {
      sentCount++;
      return queue.normalize(...requestedTypes);
    };
    const choose = createNormalizer(deps, readInWorker, createThreadShares());
    const there = asText(await choose(compiled.value, delivery));
    expect(there).toEqual(await normalize(compiled.value, delivery, deps));
    expect(sentCount).toBe(1);
  });

  it("returns a large value in a buffer of its own instead of a string", async () => {
    const rules = rulesOf([
      { type: "all", idPath: "$.small" },
      { type: "part", idPath: "$.small", payloadPath: "$.small" },
    ]);
    const text = JSON.stringify({ large: "ü".repeat(800_000), small: "é" });
    const normalized = await queue.normalize(rules, deliveryOf(text));
    expect(asText(normalized)).toEqual(await normalize(rules, deliveryOf(text), deps));
    if (normalized.kind !== "normalized") throw new Error("it holds one item");
    const [all, part] = normalized.events;
    expect(all?.large?.bytes.toString()).toBe(text);
    expect(all?.large?.bytes.buffer.byteLength).toBe(Buffer.byteLength(text));
    expect(part?.large).toBeUndefined();
  });

  it("fails with UnavailableError if the delivery is not parsed in time", async () => {
    const rules = rulesOf([{ type: "all" }]);
    await expect(queue.normalize(rules, xml(elements(20_000)), undefined, 0)).rejects.toThrow(
      UnavailableError,
    );
  });

  it("removes the delivery from the queue when the caller aborts", async () => {
    const rules = rulesOf([{ type: "all", idPath: "$.list.row[0]['@id']" }]);
    const slow = xml(elements(20_000));
    const first = queue.normalize(rules, slow);
    const answered = Array.from({ length: 100 }, () => queue.normalize(rules, slow, undefined, 0));
    for (const { status } of await Promise.allSettled(answered)) expect(status).toBe("rejected");
    expect(await queue.normalize(rules, xml(elements(2)))).toMatchObject({ events: [{ id: "0" }] });
    await first;
  });

  it("happens on the main thread instead if the worker thread does not know the channel kind", async () => {
    const known = rulesOf([{ type: "all", idPath: "$.a" }]);
    const rules = { ...known, channel: { ...known.channel, kind: "toy" } };
    expect(await queue.normalize(rules, deliveryOf({ a: "1" }))).toMatchObject({ events: [{ id: "1" }] });
  });
});

describe("compiled schema code on the worker thread", () => {
  const typed = (...types: readonly string[]) =>
    rulesOf(types.map((type) => ({ type, typePath: "$.type", idPath: "$.id", schema: { title: type } })));
  const delivery = deliveryOf({ type: "used", id: "1" });
  const published = { events: [{ id: "1", type: "used" }], failures: [] };
  /** Counts how often the code of a channel is requested. */
  function startWith(codeOf: (type: string) => string) {
    const requestedTypes: string[] = [];
    const validatorFor = (schema: JsonSchema) => {
      const type = typeof schema === "object" ? String(schema.title) : "";
      requestedTypes.push(type);
      return { validate: () => undefined, generated: { digest: type, code: codeOf(type) } };
    };
    return { requestedTypes, thread: startNormalizeQueue({ ...deps, program, validatorFor }) };
  }
  const fits = "module.exports = () => true;";

  it("is evaluated only when an event definition with this schema matches", async () => {
    const { thread } = startWith((type) => (type === "used" ? fits : "no code at all"));
    await using _ = thread;
    expect(await thread.normalize(typed("unused", "used"), delivery)).toMatchObject(published);
  });

  itDeep(
    "is sent to the thread once per schema, even if all schemas together have more than 100 MB",
    async () => {
      // Fifty times 1.4 MB, in fewer strings.
      const { requestedTypes, thread } = startWith((type) => `${fits}//${type.padEnd(14_000_000)}`);
      await using _ = thread;
      const channels = [typed("used", "a", "b", "c", "d"), typed("used", "e", "f", "g", "h")];
      for (const rules of [...channels, ...channels])
        expect(await thread.normalize(rules, delivery)).toMatchObject(published);
      expect(requestedTypes).toHaveLength(10);
    },
  );
});

describe("the choice between the main thread and the worker thread", () => {
  const sentCount: Normalizer = () => ({ kind: "tooManyItems", limit: 0 });
  const unchecked = { ...deps, validatorFor: () => ({ validate: () => undefined }) };
  const choose = createNormalizer(unchecked, sentCount, createThreadShares());
  const text = (length: number): string => JSON.stringify({ a: "x".repeat(length) });
  const singular = rulesOf([{ type: "all", idPath: "$.a" }]);

  it.each<[boolean, string, typeof singular, VerifiedDelivery]>([
    [false, "XML of 2,000 B", singular, xml(`<a>${"x".repeat(1_993)}</a>`)],
    [true, "XML of 2,100 B", singular, xml(`<a>${"x".repeat(2_093)}</a>`)],
    [false, "JSON of 130 kB", singular, deliveryOf(text(130_000))],
    [true, "JSON of 132 kB", singular, deliveryOf(text(132_000))],
  ])("uses the worker thread only above a size limit: %s for %s", (isGone, _, rules, delivery) => {
    expect(choose(rules, delivery)).toMatchObject({ kind: isGone ? "tooManyItems" : "normalized" });
  });
});

describe("explaining the outcome of a delivery on the worker thread", () => {
  it("returns the same explanation as the main thread", async () => {
    const definitions = [
      { type: "r1", typePath: "$..id", idPath: "$.rows[0].id" },
      { type: "none", idPath: "$.rows[9999]", schema: { type: "object" } },
    ];
    const rules = rulesOf(definitions);
    const here = await explainEach(rules, deliveryOf(json), deps);
    expect(here).toMatchObject({ kind: "each", results: [{ kind: "event" }, { kind: "fault" }] });
    expect(await queue.explain(rules, deliveryOf(json))).toEqual(here);
  });

  it("also explains a page that a polling source fetched", async () => {
    const request: LargeRequest = {
      body: Buffer.from('{"rows": [{"id": 1.0}, null, {"id": "é"}]}'),
      headers: { "content-type": "application/json" },
      syntax: "rfc9535",
      format: { itemsPath: "$.rows", itemsOptional: false },
      itemPaths: ["$.id"],
      pagePaths: ["$.rows[0].id", "$.rows"],
    };
    const read = await queue.readFor(polling)(request, "a");
    expect(read).toEqual(ok(readLargePage(request)));
    expect(read).toMatchObject({
      value: { value: { itemCount: 3, columns: [{ texts: ["1.0", "é"] }], values: ["1.0", {}] } },
    });
  });

  it("happens on the main thread instead if the worker thread does not know the channel kind", async () => {
    const toy = { kind: "toy", readLarge: (request: unknown) => ({ request }) };
    expect(await queue.readFor(toy)("x", "a")).toEqual(ok({ request: "x" }));
  });
});
