import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import type { ReadInWorker } from "../../../src/channels/kind.ts";
import { pollingConfigSchema } from "../../../src/channels/polling/config/config.ts";
import { compilePlan } from "../../../src/channels/polling/config/plan.ts";
import { createPageReader, type PageReader } from "../../../src/channels/polling/fetch/page-reader.ts";
import { replaceWithNulls } from "../../../src/channels/polling/fetch/replace-with-nulls.ts";
import { polling } from "../../../src/channels/polling/polling.ts";
import type { ChannelHandle } from "../../../src/event/ingest.ts";
import { err } from "../../../src/lib/result.ts";
import { JsonText } from "../../../src/normalize/body/payload-slice.ts";
import { anyText } from "../../support/any-text.ts";
import { isDeepRun, itDeep } from "../../support/deep-run.ts";
import { opened } from "../../support/opened.ts";
import { PollUpstream } from "../../support/poll-upstream.ts";
import { readHere } from "../../support/read-here.ts";
import { json } from "./answer-server.ts";
import { openedPolls } from "./poll-support.ts";
import { largeSchemes, live, story } from "./random-stories.ts";
import type { Config } from "./support.ts";

const upstream = opened(() => PollUpstream.start());
const { rigOf, server } = openedPolls();

/** A fixed seed generates the same stories in each run. */
const SEED = 20_260_201;

/**
 * The smallest set of schemes that covers each pagination and each discriminator. `test/deep/polling-random.test.ts` covers all pairs and
 * more.
 */
const seen = new Set<unknown>();
const oneOfEach = largeSchemes.filter(({ view, config }) => {
  const before = seen.size;
  seen.add(view.paging).add(config.discriminator.by);
  return seen.size > before;
});

test.each(
  oneOfEach.map((scheme, i) => ({ ...scheme, seed: SEED + i })),
)("polling large pages ($name) loses and duplicates no item", async ({ seed, ...scheme }) => {
  await fc.assert(
    fc.asyncProperty(story, (sample) => live(upstream, scheme, sample)),
    { numRuns: 1, seed },
  );
});

const value: fc.Arbitrary<unknown> = fc.oneof(
  anyText(8),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom("", "2026-01-31", "é", [], ["a"], {}, { id: "deep" }),
);
const item = fc.oneof(
  { weight: 5, arbitrary: fc.dictionary(fc.constantFrom("id", "at", "version", "x"), value) },
  { weight: 1, arbitrary: value },
);
const page = fc.record({
  items: fc.array(item, { maxLength: 8 }),
  next: fc.option(value, { nil: undefined }),
  total: value,
});

const FORMATS: readonly (Partial<Config> & { readonly contentType: string; readonly isLines?: true })[] = [
  { contentType: "application/json", itemsPath: "$.items" },
  { contentType: "application/json", itemsPath: "$.items[*]" },
  { contentType: "application/json", itemsPath: "$..id", itemsOptional: true },
  { contentType: "application/json", itemsPath: "$.items[?@.id]" },
  { contentType: "application/json" },
  { contentType: "text/plain" },
  { contentType: "application/x-ndjson", isLines: true },
];

const NEVER: ReadInWorker = async () => {
  throw new Error("a small page was sent to another thread");
};

function readerOf(config: Partial<Config>, readInWorker: ReadInWorker) {
  const settings = pollingConfigSchema.parse({
    request: { url: "https://example.com/rows" },
    itemId: "$.id",
    versionPath: "$.version",
    discriminator: { by: "sequence", path: "$.at" },
    pagination: { by: "cursorToken", path: "$.next", name: "token", hasMorePath: "$.total" },
    successOn: { path: "$headers['x-state']", equals: "ok" },
    ...config,
  });
  const plan = compilePlan(settings);
  if (!plan.ok) throw new Error(JSON.stringify(plan.error));
  const channel = { identity: { organizationId: "org_1" } } as ChannelHandle;
  return {
    plan: plan.value,
    reader: createPageReader({ readInWorker }, { plan: plan.value, run: { channel } }),
  };
}

/** Returns everything that a poll can learn from a response. */
async function learn(
  { plan, reader }: { plan: ReturnType<typeof readerOf>["plan"]; reader: PageReader },
  body: string,
  contentType: string,
) {
  const headers = { "content-type": contentType, "x-state": ["ok"], link: "</2>; rel=next" };
  const answer = { status: 200, headers, body: Buffer.from(body), url: "https://example.com/rows" };
  const read = await reader.page(answer, { secretQuery: ["token"] });
  if (!read.ok) return read.error;
  const { items, itemCount, kind } = read.value;
  const texts = items.map(({ line, span }) => line ?? (span && read.value.text.slice(span.start, span.end)));
  return {
    itemCount,
    kind,
    texts,
    contentType: read.value.contentType,
    next: read.value.addressOf("/2?token=1&a=2"),
    items: items.map((one) => [
      one.index,
      one.contentHash(),
      ...plan.reads.ofItem.map((path) => one.read(path)),
    ]),
    values: plan.reads.ofPage.map(read.value.read),
    again: await reader.findsSameItems(
      read.value.text,
      texts.map((text) => text ?? ""),
    ),
  };
}

describe("a large response page of a polled API", () => {
  const inWorker = readHere(polling);

  it.each(
    FORMATS,
  )("is parsed in a worker thread with the same result as a small page in the calling thread: %j", async ({
    contentType,
    isLines,
    ...config
  }) => {
    let sent = 0;
    const elsewhere = readerOf(config, (...request) => {
      sent++;
      return inWorker(...request);
    });
    const here = readerOf(config, NEVER);
    // Exceeds 1 MiB with bytes that no path or hash sees: spaces around the page, or empty lines after the lines.
    const padding = " ".repeat(1_100_000);
    await fc.assert(
      fc.asyncProperty(page, async (generated) => {
        const lines = generated.items.map((one, at) => (at % 3 === 2 ? "broken" : JSON.stringify(one)));
        const body = isLines ? `${lines.join("\n")}\n{}\n` : JSON.stringify(generated);
        const small = await learn(here, body, contentType);
        const isWhole = config.itemsPath === undefined && !isLines;
        const large = await learn(elsewhere, `${body}${padding}`, contentType);
        // A page that is a single item includes the spaces.
        if (isWhole) expect({ ...large, items: [] }).toEqual({ ...small, items: [] });
        else expect(large).toEqual(small);
      }),
      { numRuns: isDeepRun ? 8 : 2, seed: SEED },
    );
    expect(sent).toBeGreaterThan(0);
  });

  it("in XML is parsed in a worker thread with the same result as a small page in the calling thread", async () => {
    const config = { itemsPath: "$.list.row" };
    const xml = `<list><total>true</total><row><id>1</id><at>7</at></row><row><id>${"x".repeat(9)}</id></row></list>`;
    const small = await learn(readerOf(config, NEVER), xml, "application/xml");
    const large = await learn(readerOf(config, inWorker), `${xml}${" ".repeat(2_000)}`, "application/xml");
    expect(large).toEqual(small);
    expect(small).toMatchObject({
      itemCount: 2,
      kind: "json",
      texts: [expect.stringContaining('"7"'), expect.anything()],
    });
  });

  itDeep("is rejected if the configured JSONPath visits too many nodes", async () => {
    const config = { itemId: "$body..*" };
    const body = JSON.stringify({ items: Array.from({ length: 2_100 }, (_, id) => ({ id })) });
    const read = await learn(
      readerOf({ ...config, itemsPath: "$.items" }, inWorker),
      `${body}${" ".repeat(200_000)}`,
      "application/json",
    );
    expect(read).toMatchObject({ code: "path_budget", message: expect.stringContaining("nodes") });
  });

  it("that takes too much time or memory to parse makes the poll fail and does not move the cursor", async () => {
    const rig = rigOf({}, { readInWorker: async () => err({ reason: "invalid_body", detail: "" }) });
    server.answers = [json({ rows: [{ id: 1, x: "x".repeat(1_100_000) }] })];
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "invalid_body" });
    expect(rig.cursor).toBeUndefined();
  });
});

describe("replaceWithNulls", () => {
  const text = ' {"a": [ 1.0 , {"b": 2} ], "c": 3} ';
  const parsed = JsonText.parse(text);
  const cut = (...locations: (string | number)[][]) =>
    parsed
      .cut(locations.map((location) => ({ value: undefined, location })))
      .flatMap((one) => one?.span ?? []);

  it("replaces the given values of a JSON text with null and leaves all other characters unchanged", () => {
    expect(replaceWithNulls(text, cut(["a", 1], ["c"]))).toBe(' {"a": [ 1.0 , null ], "c": null} ');
    expect(replaceWithNulls(text, [])).toBe(text);
  });

  it("returns undefined if a value to replace contains a value to keep, or is contained in one", () => {
    expect(replaceWithNulls(text, cut(["a"]), cut(["a", 0]))).toBeUndefined();
    expect(replaceWithNulls(text, cut(["a", 0]), cut(["a"]))).toBeUndefined();
    expect(replaceWithNulls(text, cut(["a", 0]), cut(["a", 0]))).toBeUndefined();
  });
});
