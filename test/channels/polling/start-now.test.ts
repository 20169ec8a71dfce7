import { describe, expect, it } from "vitest";
import { roundDownLike } from "../../../src/channels/polling/config/timestamps.ts";
import { json, status } from "./answer-server.ts";
import { openedPositions, SINCE } from "./positions-support.ts";
import type { Config } from "./support.ts";

const { clock, queries, rigOf, server } = openedPositions();

const MINUTE_MS = 60_000;
const timestamp = { by: "timestamp", path: "$.at" } as const;
const noRetry = { retry: { attempts: 0 } } as const;
const startNow = (config: Partial<Config> = {}, query: Record<string, string> = {}) =>
  rigOf({ discriminator: timestamp, startAt: "now", ...noRetry, ...config }, query);

/** Responds with items, and with the `Date` of a server whose clock differs. */
const respond = (items: readonly unknown[], aheadMs = 0) =>
  json(items, { date: new Date(clock.nowMs + aheadMs).toUTCString() });
const withoutDate = (items: readonly unknown[]) => json(items, { date: "unknown" });

/** Polls once a minute, and returns the ids of all published items. */
async function pollEach(
  rig: ReturnType<typeof rigOf>,
  ...answers: (() => (typeof server.answers)[number])[]
) {
  for (const answer of answers) {
    server.answers = [answer()];
    await rig.poll();
    clock.nowMs += MINUTE_MS;
  }
  return rig.log.map(({ id }) => id);
}

const item = (id: string, at: unknown) => ({ id, at });

describe('polling by timestamp with `startAt: "now"`', () => {
  it.each<[string, number, unknown[], unknown[]]>([
    ["10 minutes behind", -10, [item("old", "2026-01-31T11:49:50Z")], [item("new", "2026-01-31T11:51:00Z")]],
    ["10 minutes ahead", 10, [item("old", "2026-01-31T12:09:50Z")], [item("new", "2026-01-31T12:11:00Z")]],
  ])("publishes items created after the start if the server's clock is %s", async (_, minutes, before, created) => {
    const answers = [
      () => respond(before, minutes * MINUTE_MS),
      () => respond([...before, ...created], minutes * MINUTE_MS),
    ];
    expect(await pollEach(startNow(), ...answers)).toEqual(["new"]);
  });

  it.each<[string, unknown, unknown]>([
    ["dates", "2026-01-30", "2026-01-31"],
    ["dates with a zone", "2026-01-30T00:00:00+02:00", "2026-01-31T00:00:00+02:00"],
    ["hours", "2026-01-31T11:00Z", "2026-01-31T12:00Z"],
    ["minutes", "2026-01-31 11:59", "2026-01-31 12:00"],
    ["seconds", "2026-01-31T11:59:58Z", "2026-01-31T12:00:30Z"],
  ])("publishes items created after the start if the server's times are whole %s", async (_, old, created) => {
    clock.nowMs += 30_750;
    const before = [item("old", old)];
    const after = [...before, item("new", created)];
    expect(
      await pollEach(
        startNow(),
        () => respond(before),
        () => respond(after),
      ),
    ).toEqual(["new"]);
  });

  it("publishes items created before the first successful poll", async () => {
    const rig = startNow();
    const created = [item("old", "2026-01-31T11:59:00Z"), item("new", "2026-01-31T12:01:00Z")];
    const answers = [() => status(500), () => status(500), () => status(500), () => respond(created)];
    expect(await pollEach(rig, ...answers)).toEqual(["new"]);
    expect(rig.warnings).toEqual([]);
  });

  it("requests items from the last whole minute on until it knows the precision of the server's times", async () => {
    clock.nowMs += 30_750;
    const rig = startNow({}, SINCE);
    const created = [item("new", "2026-01-31T12:00:00Z")];
    expect(
      await pollEach(
        rig,
        () => respond([]),
        () => respond(created),
      ),
    ).toEqual(["new"]);
    expect(new Set(queries())).toEqual(new Set(["since=2026-01-31T12:00:00.000Z"]));
  });

  it("without a usable Date skips the items of the first poll, whatever the server's clock shows", async () => {
    const before = [item("old", "2026-01-31T11:40:00Z")];
    const after = [...before, item("new", "2026-01-31T11:51:00Z")];
    expect(
      await pollEach(
        startNow(),
        () => withoutDate(before),
        () => withoutDate(after),
      ),
    ).toEqual(["new"]);
    expect(
      await pollEach(
        startNow({}, SINCE),
        () => withoutDate([]),
        () => withoutDate([]),
      ),
    ).toEqual([]);
    expect(queries().at(-1)).toMatch(/^since=2026-01-31T12:0/);
  });

  it("without a usable Date reports a gap if the first poll succeeds late, and skips no item from the start on", async () => {
    const rig = startNow();
    const created = [item("old", "2026-01-31T11:59:00Z"), item("new", "2026-01-31T12:01:00Z")];
    const answers = [() => status(500), () => status(500), () => withoutDate(created)];
    expect(await pollEach(rig, ...answers)).toEqual(["new"]);
    expect(rig.warnings).toEqual(["start_gap"]);
  });

  it("does not report `behind_cursor` while the server has only items from before the start", async () => {
    const rig = startNow();
    const { source } = rig;
    server.answers = [respond([item("old", "2026-01-31T11:00:00Z")])];
    for (let polls = 0; polls < 5; polls++) await source.poll(rig.run(new AbortController().signal));
    expect(rig.warnings).toEqual([]);
  });
});

describe('polling with `startAt: "now"` without times', () => {
  it("does not publish existing items within the look-back later", async () => {
    const rig = startNow({ discriminator: { by: "sequence", path: "$.id", lookBack: 5 } });
    const page = (...ids: number[]) => respond(ids.map((id) => ({ id })));
    expect(
      await pollEach(
        rig,
        () => page(1, 2, 4),
        () => page(1, 2, 3, 4, 5),
      ),
    ).toEqual(["3", "5"]);
  });

  it.each<[string, Config["discriminator"], Partial<Config>]>([
    ["seenSet", { by: "seenSet" }, {}],
    ["sequence", { by: "sequence", path: "$.id" }, {}],
    ["etag", { by: "etag" }, {}],
    ["seenSet with cron", { by: "seenSet" }, { schedule: { cron: "* * * * *" } }],
  ])("(%s) reports a gap if the first poll succeeds more than one interval after the start", async (_, discriminator, config) => {
    const late = startNow({ discriminator, ...config });
    const answers = [
      () => status(500),
      () => status(500),
      () => respond([{ id: 1 }]),
      () => respond([{ id: 1 }, { id: 2 }]),
    ];
    expect(await pollEach(late, ...answers)).toEqual(["2"]);
    expect(late.warnings).toEqual(["start_gap"]);
    const prompt = startNow({ discriminator, ...config });
    await pollEach(
      prompt,
      () => respond([{ id: 1 }]),
      () => respond([{ id: 1 }]),
    );
    expect(prompt.warnings).toEqual([]);
  });
});

describe("a start time", () => {
  const at = (time: string) => Date.parse(`2026-01-31T${time}Z`);
  it.each<[readonly string[], string, string]>([
    [["2026-01-30", "2026-01-31"], "iso", "00:00:00.000"],
    [["2026-01-30", "2026-01-31T10:00"], "iso", "12:00:00.000"],
    [["2026-01-31T10:20:00+05:30"], "iso", "12:34:00.000"],
    [["2026-01-31T00:00:00-05:30"], "iso", "05:30:00.000"],
    [["2026-01-31T10:20:30Z", "2026-01-31T10:20:00Z"], "iso", "12:34:56.000"],
    [["2026-01-31T10:20:30.5Z", "2026-01-31"], "iso", "12:34:56.789"],
    [["1769851805"], "epochSeconds", "12:34:56.000"],
    [["Sat, 31 Jan 2026 09:30:00 +0200"], "rfc2822", "12:34:00.000"],
    [["no time"], "iso", "12:34:56.789"],
    [[], "iso", "12:34:56.789"],
  ])("is rounded down to the precision of the timestamps %j (%s)", (texts, format, rounded) => {
    expect(new Date(roundDownLike(at("12:34:56.789"), texts, format as "iso")).toISOString()).toBe(
      new Date(at(rounded)).toISOString(),
    );
  });
});
