import { describe, expect, it } from "vitest";
import { pollingConfigSchema } from "../../../src/channels/polling/config/config.ts";
import { createPolledSource, polling } from "../../../src/channels/polling/polling.ts";
import { findingsOf } from "../../../src/lib/findings.ts";
import { readHere } from "../../support/read-here.ts";
import { outbound } from "./support.ts";

const base = {
  request: { url: "https://api.example.com/rows", query: { since: "{{cursor}}" } },
  discriminator: { by: "timestamp", path: "$.at" },
};
const query = { by: "seenSet" };
const plain = { request: { url: "https://api.example.com/rows" } };

function findings(config: object): readonly string[] {
  const parsed = pollingConfigSchema.safeParse(config);
  return parsed.success
    ? []
    : findingsOf(parsed.error, config).map(({ path, message }) => `${path}: ${message}`);
}

describe("the settings of a polling channel", () => {
  it("require only `url` and `discriminator`", () => {
    expect(pollingConfigSchema.parse(base)).toMatchObject({
      schedule: { intervalSeconds: 60, timezone: "UTC" },
      jitter: 0.1,
      overlap: "skip",
      order: "ascending",
      startAt: "now",
      maxItemsPerPoll: 10_000,
      dedupe: { onConflict: "duplicate", windowSeconds: 86_400 },
      onInvalid: "quarantine",
      run: "subscribed",
      discriminator: { lookBackSeconds: 0, format: "iso" },
    });
  });

  it.each<[string, object]>([
    ["onInvalid", { ...base, onInvalid: "reject" }],
    ["schedule.intervalSeconds", { ...base, schedule: { intervalSeconds: 4 } }],
    ["schedule.cron", { ...base, schedule: { cron: "* * * * * *" } }],
    ["schedule.cron", { ...base, schedule: { cron: "0,2 0 0 1 1 *" } }],
    ["schedule.cron", { ...base, schedule: { cron: "H * * * *" } }],
    ["schedule.cron", { ...base, schedule: { cron: "soon" } }],
    ["schedule.timezone", { ...base, schedule: { cron: "0 * * * *", timezone: "Mars/Olympus" } }],
    ["request.url", { ...base, request: { url: "ftp://example.com/" } }],
    ["request.url", { ...base, request: { url: "https://u:p@example.com/" } }],
    ["request.url", { ...base, request: { url: "https://example.com{{cursor}}" } }],
    ["request.url", { ...base, request: { url: "https://{{cursor}}.example.com/" } }],
    [
      "request.headers.Authorization",
      { ...base, request: { ...base.request, headers: { Authorization: "x" } } },
    ],
    ["request.headers.x-a", { ...base, request: { ...base.request, headers: { "x-a": " a " } } }],
    [
      "request.headers.If-None-Match",
      { ...base, request: { ...base.request, headers: { "If-None-Match": "x" } } },
    ],
    ["request.query.since", { ...base, request: { ...base.request, query: { since: "{{cursor | hex}}" } } }],
    ["request.query.since", { ...base, request: { ...base.request, query: { since: "{{page}}" } } }],
    [
      "request.query.since",
      { ...base, request: { ...base.request, query: { since: "{{cursor | pattern:YYYY-MM-DD}}" } } },
    ],
    [
      "pagination.lastPagePath",
      {
        ...base,
        pagination: { by: "cursorToken", path: "$.n", name: "n", hasMorePath: "$.m", lastPagePath: "$.l" },
      },
    ],
    ["request.query.since", { ...base, discriminator: query }],
    ["request.query.since", { ...base, request: { ...base.request, query: { since: "{{cursor" } } }],
    [
      "request.body.a[0].b",
      { ...base, request: { ...base.request, method: "POST", body: { a: [{ b: "{{no}}" }] } } },
    ],
    ["request.body", { ...base, request: { ...base.request, body: {} } }],
    ["itemId", { ...base, itemId: "id" }],
    ["versionPath", { ...base, versionPath: "v" }],
    ["itemsPath", { ...base, itemsPath: "$." }],
    ["itemsPath", { ...base, itemsPath: "$.rows", decode: "ndjson" }],
    ["successOn.path", { ...base, successOn: { equals: true } }],
    ["startAt", { ...base, startAt: "later" }],
    ["pagination.param", { ...base, pagination: { by: "offset" } }],
    ["pagination.name", { ...base, pagination: { by: "cursorToken", path: "$.next" } }],
    [
      "pagination.in",
      { ...base, pagination: { by: "cursorToken", path: "$.next", in: "body", name: "next" } },
    ],
    ["pagination.path", { ...base, pagination: { by: "nextUrlPath", path: "next" } }],
    ["pagination.by", { ...base, order: "descending", pagination: { by: "offset", param: "o" } }],
    ["pagination.by", { ...base, order: "unordered", pagination: { by: "page", param: "p" } }],
    [
      "pagination.by",
      { ...plain, discriminator: base.discriminator, pagination: { by: "offset", param: "o" } },
    ],
    [
      "pagination.by",
      { ...plain, order: "descending", discriminator: query, pagination: { by: "page", param: "p" } },
    ],
    [
      "conditional",
      {
        ...plain,
        request: { ...plain.request, query: { now: "{{now}}" } },
        discriminator: query,
        conditional: true,
      },
    ],
    [
      "conditional",
      { ...plain, request: { ...plain.request, method: "POST" }, discriminator: query, conditional: true },
    ],
    [
      "request.method",
      { ...plain, request: { ...plain.request, method: "POST" }, discriminator: { by: "etag" } },
    ],
    ["retry.maxMs", { ...base, retry: { initialMs: 100, maxMs: 50 } }],
  ])("are rejected with an error that names %s", (path, config) => {
    expect(findings(config).map((finding) => finding.split(": ")[0])).toEqual([path]);
  });

  it.each<[string, object]>([
    [
      "a cron expression with a time zone",
      { ...base, schedule: { cron: "*/5 8-18 * * MON-FRI", timezone: "Europe/Zurich" } },
    ],
    ["six fields, some seconds apart", { ...base, schedule: { cron: "*/10 * * * * *" } }],
    ["the rarest cron expression", { ...base, schedule: { cron: "0 0 29 2 *" } }],
    [
      "a token in the body",
      {
        ...base,
        request: { url: base.request.url, method: "POST", body: { since: "{{cursor}}" } },
        pagination: { by: "cursorToken", path: "$.next", in: "body", name: "next" },
      },
    ],
    ["offsets where each page begins at the cursor", { ...base, pagination: { by: "offset", param: "o" } }],
    [
      "a sequence over unordered pages",
      {
        ...base,
        order: "unordered",
        discriminator: { by: "sequence", path: "$.n" },
        pagination: { by: "linkHeader" },
      },
    ],
    [
      "conditional requests with newest-first pages",
      {
        ...plain,
        discriminator: query,
        order: "descending",
        conditional: true,
        pagination: { by: "linkHeader" },
      },
    ],
    [
      "a start time in its own format",
      {
        ...base,
        discriminator: { ...base.discriminator, format: "epochSeconds" },
        startAt: { value: "1769851800" },
      },
    ],
  ])("allow %s", (_, config) => {
    expect(findings(config)).toEqual([]);
  });

  it("are translated into the schedule and the origin of the polls", () => {
    const source = createPolledSource({
      outbound,
      clock: Date.now,
      random: Math.random,
      wait: async () => {},
      readInWorker: readHere(polling),
    });
    expect(source.schedule(base)).toEqual({ everySeconds: 60, jitter: 0.1 });
    const schedule = { cron: "0 8 * * *", timezone: "Europe/Zurich" };
    expect(source.schedule({ ...base, schedule })).toEqual({ ...schedule, jitter: 0.1 });
    const url = "https://api.example.com:8443/a/{{cursor}}?b={{now}}";
    expect(source.origin({ ...base, request: { url } })).toBe("https://api.example.com:8443");
  });
});
