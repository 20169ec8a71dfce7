import { beforeAll, describe, expect, it } from "vitest";
import { createSeriesIds, formatSeriesKey, OTHER } from "../../../src/data/series/series-names.ts";
import { writeCounts } from "../../../src/data/series/write-counts.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);
const MINUTE_MS = 60_000;

interface Installed {
  readonly id: string;
  readonly organizationId: string;
  readonly channels: readonly { readonly id: string; readonly uid: string }[];
}
// biome-ignore lint/suspicious/noExplicitAny: an entity of the API
type Summary = any;

const channel = (uid: string) => ({
  uid,
  kind: "webhook",
  config: {},
  events: [{ type: "push", typePath: "$.type", idPath: "$.id" }],
});

let [busy, quiet]: readonly Installed[] = [];
beforeAll(async () => {
  busy = await spine.install(channel("main"), channel("second"));
  quiet = await spine.install(channel("main"));
});

const summaryOf = async (app: Installed | undefined): Promise<Summary> => {
  const summaries: readonly Summary[] = await spine.api.call.get("/apps/summaries");
  return summaries.find(({ id }) => id === app?.id);
};

let writes = 0;
/** Counts published events of an app, as a gateway does. */
async function count(
  app: { readonly id: string; readonly organizationId: string },
  at: number,
  events: number,
) {
  const { db } = spine.api.database;
  const channelUid = app.id === OTHER ? OTHER : "main";
  const type = app.id === OTHER ? OTHER : "push";
  const name = { organizationId: app.organizationId, appId: app.id, channel: channelUid, type };
  const ids = await createSeriesIds(db).resolve(new Map([[formatSeriesKey(name), name]]));
  const seriesId = ids.get(formatSeriesKey(name)) ?? 0;
  const minuteMs = at - (at % MINUTE_MS);
  const one = { seriesId, metric: "published", minuteMs, detail: "", count: events, buckets: undefined };
  await writeCounts(db, { writer: "test", sequence: ++writes, counts: [one] });
  return new Date(minuteMs).toISOString();
}

describe("the summaries of apps", () => {
  it("list the apps of `GET /apps` in the same order, with search and pages", async () => {
    const ids = async (path: string) => {
      const { body, headers } = await spine.api.call("GET", path);
      return [headers.get("x-total-count"), body.map(({ id }: { id: string }) => id)];
    };
    expect(await ids("/apps/summaries")).toEqual(await ids("/apps"));
    for (const query of ["limit=1&offset=1", "search=INLET", "search=no%20such%20app", "offset=100"])
      expect(await ids(`/apps/summaries?${query}`)).toEqual(await ids(`/apps?${query}`));
    const foreign = spine.api.as(await spine.api.createForeignKey());
    expect(await foreign.get("/apps/summaries")).toEqual([]);
  });

  it("count channels and quarantined items, also the newest ones of a reason", async () => {
    const [main, second] = busy?.channels ?? [];
    for (const type of ["a", "b"]) await spine.send(main?.id ?? "", { type });
    await spine.send(second?.id ?? "", "not JSON");
    expect(await summaryOf(busy)).toMatchObject({ channels: 2, quarantined: 3 });
    expect(await summaryOf(quiet)).toMatchObject({ channels: 1, quarantined: 0 });
  });

  it("have the rate of the last hour and the last minute with an event", async () => {
    if (!busy) throw new Error("no app");
    expect(await summaryOf(busy)).toMatchObject({ lastEventAt: null, eventsPerMinute: 0 });
    const old = await count(busy, Date.now() - 3 * 60 * MINUTE_MS, 1_000);
    expect(await summaryOf(busy)).toMatchObject({ lastEventAt: old, eventsPerMinute: 0 });
    await count(busy, Date.now() - 10 * MINUTE_MS, 90);
    const newest = await count(busy, Date.now() - 5 * MINUTE_MS, 60);
    expect(await summaryOf(busy)).toMatchObject({ lastEventAt: newest, eventsPerMinute: 2.5 });
  });

  it("have no rate while the organization has too many series", async () => {
    if (!busy) throw new Error("no app");
    await count({ ...busy, id: OTHER }, Date.now(), 1);
    expect(await summaryOf(busy)).toMatchObject({ eventsPerMinute: null, lastEventAt: expect.any(String) });
    expect(await summaryOf(quiet)).toMatchObject({ eventsPerMinute: null, lastEventAt: null });
  });

  it("have the highest severity of the problems that are not resolved", async () => {
    if (!quiet) throw new Error("no app");
    const { id, organizationId } = quiet;
    const add = (
      subject: string,
      severity: "error" | "warning",
      state: "opened" | "acknowledged" | "resolved",
    ) => {
      const at = new Date();
      return spine.api.database.db
        .insertInto("problems")
        .values({
          id: `prob_${subject}`,
          organizationId,
          appId: id,
          kind: "channel_silent",
          subject,
          severity,
          state,
          about: "{}",
          figures: "{}",
          message: "",
          cure: "",
          firstSeenAt: at,
          lastSeenAt: at,
          createdAt: at,
        })
        .execute();
    };
    expect(await summaryOf(quiet)).toMatchObject({ openProblems: 0, health: "ok" });
    await add("1", "error", "resolved");
    await add("2", "warning", "acknowledged");
    expect(await summaryOf(quiet)).toMatchObject({ openProblems: 1, health: "warning" });
    await add("3", "error", "opened");
    expect(await summaryOf(quiet)).toMatchObject({ openProblems: 2, health: "error" });
    expect(await summaryOf(busy)).toMatchObject({ openProblems: 0, health: "ok" });
  });
});
