import { describe, expect, it } from "vitest";
import type { Publish } from "../../../src/bus/publish/publish.ts";
import type { NewChannel } from "../../../src/data/channels/channels.ts";
import type { Sighting } from "../../../src/data/problems/problems.ts";
import { PROBLEM_EVENT_TYPES } from "../../../src/event/problem.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { createLog } from "../../../src/log.ts";
import type { Check } from "../../../src/maintenance/problems/checks.ts";
import { startProblemWatch } from "../../../src/maintenance/problems/problem-watch.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);

const config = { retention: { maxAgeSeconds: 604_800, maxEntries: 1_000, maxBytes: 1_048_576 } };
const CHANNEL: NewChannel = {
  uid: "problems",
  title: null,
  kind: "cloudevents",
  config,
  secrets: {},
  state: "active",
  retention: config.retention,
  events: PROBLEM_EVENT_TYPES.map((type) => ({ type })),
};

/** Starts a watch with one check that the test controls. */
function startWatch(
  look: Check["look"],
  publish: Publish = spine.path.publish,
  isHolder = (): boolean => true,
) {
  const lines: Record<string, unknown>[] = [];
  const { database, keyring } = spine.api;
  const watch = startProblemWatch({
    db: database.db,
    keyring,
    publish,
    channel: CHANNEL,
    dedupeWindowMs: 3_600_000,
    checks: [{ kinds: ["connection_failing"], isSlow: false, look }],
    isHolder,
    clock: Date.now,
    log: createLog({ level: "info", destination: { write: (line) => void lines.push(JSON.parse(line)) } }),
    timing: { everyMs: 20, slowEveryMs: 20, openAfterMs: 0, resolveAfterMs: 0 },
  });
  return Object.assign(watch, { lines });
}

let made = 0;

async function failing(caller: Pick<typeof spine.api.call, "get"> = spine.api.call): Promise<Sighting> {
  const [{ id: organizationId }] = await caller.get("/organizations");
  made++;
  return {
    organizationId,
    subject: `con_${made}`,
    about: {},
    figures: {},
    message: `It fails (${made}).`,
    suggestedAction: "Mend it.",
    kind: "connection_failing",
    level: "raised",
    severity: "error",
  };
}

/** Returns the fields of all events on the topics of problems. */
async function publishedFields(): Promise<readonly Readonly<Record<string, string>>[]> {
  const topics = await spine.server.client.keys("events.*.problems.*ed");
  const entries = await Promise.all(topics.map((topic) => spine.server.client.xrange(topic, "-", "+")));
  return entries.flat().map(([, fields]) => {
    const names = fields.filter((_, index) => index % 2 === 0);
    return Object.fromEntries(names.map((name, index) => [name, fields[index * 2 + 1] ?? ""]));
  });
}

/** Returns the ids of all events on the topics of problems. */
const published = async (): Promise<readonly string[]> => (await publishedFields()).map(({ id = "" }) => id);

const untold = () => spine.api.database.db.selectFrom("problemEvents").selectAll().execute();

describe("the event about a new problem", () => {
  it("is published only once, even if the gateway stops before it has recorded the publication", async () => {
    const sighting = await failing();
    let calls = 0;
    {
      // Simulates a worker that dies after publishing and before recording it.
      await using _ = startWatch(
        async () => [sighting],
        async (batch, options) => {
          await spine.path.publish(batch, options);
          calls++;
          throw new UnavailableError("the worker is gone");
        },
      );
      await until(() => calls > 1);
    }
    const before = await published();
    expect(before).toHaveLength(1);
    expect(await untold()).toHaveLength(1);
    await using _ = startWatch(async () => [sighting]);
    await until(async () => (await untold()).length === 0);
    expect(await published()).toEqual(before);
  });

  it("is published later and in order if Redis is unavailable at first", async () => {
    const sighting = await failing();
    const already = await published();
    let seen = [sighting];
    let isAway = true;
    await using watch = startWatch(
      async () => seen,
      async (batch, options) => {
        if (isAway) throw new UnavailableError("Redis is away");
        return spine.path.publish(batch, options);
      },
    );
    await until(async () => (await untold()).length > 0);
    seen = [];
    const find = async () =>
      (await spine.api.call.get("/problems")).find(
        ({ message }: { message: string }) => message === sighting.message,
      );
    await until(async () => (await find()).state === "resolved");
    expect(await published()).toEqual(already);
    isAway = false;
    await until(async () => (await untold()).length === 0);
    const { id } = await find();
    expect(await published()).toEqual(expect.arrayContaining([...already, `${id}.opened`, `${id}.resolved`]));
    await until(() => watch.lines.some(({ event }) => event === "problems.recovered"));
  });

  it("is published even if events of another organization cannot be published", async () => {
    const stranger = spine.api.as(await spine.api.createForeignKey());
    const [away, other] = [await failing(), await failing(stranger)];
    const told = async (one: Sighting) => {
      const problem = await spine.api.database.db
        .selectFrom("problems")
        .select("id")
        .where("subject", "=", one.subject)
        .executeTakeFirst();
      return problem !== undefined && (await published()).includes(`${problem.id}.opened`);
    };
    {
      await using _ = startWatch(
        async () => [away, other],
        async (batch, options) => {
          if (batch.channel.organizationId === away.organizationId)
            throw new UnavailableError("its slot is away");
          return spine.path.publish(batch, options);
        },
      );
      await until(() => told(other));
      expect(await told(away)).toBe(false);
    }
    await spine.api.database.db.deleteFrom("problems").where("subject", "=", away.subject).execute();
  });
});

describe("problems while their check fails", () => {
  it("stay unchanged, and the API shows that the check fails", async () => {
    const sighting = await failing();
    let isAway = false;
    await using watch = startWatch(async () => {
      if (isAway) throw new UnavailableError("Redis is away");
      return [sighting];
    });
    const checks = async () =>
      (await spine.api.call.get("/problems/checks")).find(
        (look: { kind: string }) => look.kind === "connection_failing",
      );
    const mine = async () =>
      (await spine.api.call.get("/problems?state=opened")).filter(
        ({ message }: { message: string }) => message === sighting.message,
      );
    await until(async () => (await mine()).length === 1);
    isAway = true;
    await until(async () => (await checks()).failingSince !== null);
    const { lastCheckedAt, failingSince } = await checks();
    expect(Date.parse(lastCheckedAt)).toBeLessThanOrEqual(Date.parse(failingSince));
    expect(await mine()).toHaveLength(1);
    isAway = false;
    await until(async () => (await checks()).failingSince === null);
    const events = watch.lines
      .map(({ event }) => event)
      .filter((event) => String(event).includes("evaluated"));
    expect(events).toEqual(["problems.not_evaluated", "problems.evaluated_again"]);
  });
});

describe("problem checks", () => {
  it("run only on the gateway that holds the lease, and continue on another gateway after the holder stops", async () => {
    const sighting = await failing();
    const turn = { of: "first" };
    const checks = { first: 0, second: 0 };
    const start = (name: keyof typeof checks) =>
      startWatch(
        async () => {
          checks[name]++;
          return [sighting];
        },
        undefined,
        () => turn.of === name,
      );
    await using first = start("first");
    await using second = start("second");
    await until(() => checks.first > 1 && first.ages().has("connection_failing"));
    expect([checks.second, second.ages().size]).toEqual([0, 0]);
    turn.of = "second";
    const before = checks.first;
    await until(() => checks.second > 1 && first.ages().size === 0);
    expect(checks.first - before).toBeLessThanOrEqual(1);
    const all = await spine.api.call.get("/problems?limit=200");
    expect(all.filter(({ message }: { message: string }) => message === sighting.message)).toHaveLength(1);
  });
});

describe("an acknowledged problem", () => {
  it("adds one audit entry, and a resolved problem cannot be acknowledged", async () => {
    const sighting = await failing();
    let seen = [sighting];
    await using _ = startWatch(async () => seen);
    const { call } = spine.api;
    const find = async () =>
      (await call.get("/problems?state=opened")).find(
        ({ message }: { message: string }) => message === sighting.message,
      );
    await until(async () => (await find()) !== undefined);
    const { id } = await find();
    const acknowledge = `/problems/${id}/acknowledge`;
    const first = await call.post(acknowledge);
    expect(first).toMatchObject({ state: "acknowledged", acknowledgedAt: expect.any(String) });
    expect(first.acknowledgedBy).toMatch(/^acc_/);
    expect(await call.post(acknowledge)).toMatchObject({ acknowledgedAt: first.acknowledgedAt });
    const audit = await call.get(`/audit?entity=problem&entityId=${id}`);
    expect(audit).toMatchObject([{ action: "acknowledge", accountId: first.acknowledgedBy }]);
    seen = [];
    await until(async () => (await call.get(`/problems/${id}`)).state === "resolved");
    expect(await call.expectRejection("POST", acknowledge)).toEqual({ status: 409, code: "conflict" });
    expect(await call.get("/problems?state=acknowledged")).toEqual([]);
    const reader = spine.api.as(await spine.api.keyWith("problems.read"));
    expect((await reader("GET", `/problems/${id}`)).status).toBe(200);
    expect((await reader("POST", acknowledge)).status).toBe(403);
  });
});

describe("a muted problem", () => {
  const find = async (message: string, query = "") =>
    (await spine.api.call.get(`/problems?limit=200${query}`)).find(
      (one: { readonly message: string; readonly state: string }) =>
        one.message === message && one.state !== "resolved",
    );

  it("does not count as open until the mute ends, and stays muted if it recurs", async () => {
    const sighting = await failing();
    const { message } = sighting;
    const { call } = spine.api;
    let seen = [sighting];
    await using watch = startWatch(async () => seen);
    await until(async () => (await find(message)) !== undefined);
    const { id } = await find(message);
    const before = await call.get("/overview");
    const muted = await call.post(`/problems/${id}/mute`, { forSeconds: 3_600 });
    expect(muted).toMatchObject({ state: "opened", mutedUntil: expect.any(String) });
    expect(Date.parse(muted.mutedUntil)).toBeGreaterThan(Date.now());
    expect(await find(message, "&muted=false")).toBeUndefined();
    expect(await find(message, "&muted=true")).toMatchObject({ id });
    expect(await call.get("/overview")).toMatchObject({
      openProblems: before.openProblems - 1,
      mutedProblems: before.mutedProblems + 1,
    });
    const count = (state: string) =>
      watch.counts().find((one) => one.kind === "connection_failing" && one.state === state)?.count ?? 0;
    await until(() => count("muted") === 1);

    seen = [];
    await until(async () => (await call.get(`/problems/${id}`)).state === "resolved");
    expect(await call.get(`/problems/${id}`)).toMatchObject({ mutedUntil: null });
    expect(await call.expectRejection("POST", `/problems/${id}/mute`, { forSeconds: 60 })).toEqual({
      status: 409,
      code: "conflict",
    });
    seen = [sighting];
    await until(async () => (await find(message)) !== undefined);
    const again = await find(message);
    expect(again).toMatchObject({ mutedUntil: muted.mutedUntil, mutedBy: muted.mutedBy });

    await spine.api.database.db
      .updateTable("problems")
      .set({ mutedUntil: new Date(Date.now() - 1_000) })
      .where("id", "=", again.id)
      .execute();
    expect(await find(message, "&muted=false")).toMatchObject({ id: again.id, mutedUntil: null });
    const audit = await call.get(`/audit?entity=problem&entityId=${id}`);
    expect(audit).toMatchObject([{ action: "mute", entityId: id }]);
  });

  it("is not muted again if the mute of the preceding problem was ended", async () => {
    const sighting = await failing();
    const { message } = sighting;
    const { call } = spine.api;
    let seen = [sighting];
    await using _ = startWatch(async () => seen);
    const recur = async () => {
      seen = [];
      await until(async () => (await find(message)) === undefined);
      seen = [sighting];
      await until(async () => (await find(message)) !== undefined);
      return find(message);
    };
    await until(async () => (await find(message)) !== undefined);
    await call.post(`/problems/${(await find(message)).id}/mute`, { forSeconds: 3_600 });
    const muted = await recur();
    expect(muted.mutedUntil).not.toBeNull();
    await call.post(`/problems/${muted.id}/unmute`);
    expect(await recur()).toMatchObject({ mutedUntil: null, mutedBy: null });
  });

  it("has its mute in its event, also once it is resolved", async () => {
    const sighting = await failing();
    let seen = [sighting];
    await using _ = startWatch(async () => seen);
    await until(async () => (await find(sighting.message)) !== undefined);
    const { id } = await find(sighting.message);
    const { mutedUntil, mutedBy } = await spine.api.call.post(`/problems/${id}/mute`, { forSeconds: 3_600 });
    seen = [];
    await until(async () => (await published()).includes(`${id}.resolved`));
    const [event] = (await publishedFields()).filter((fields) => fields.id === `${id}.resolved`);
    expect(JSON.parse(event?.data ?? "")).toMatchObject({ id, state: "resolved", mutedUntil, mutedBy });
  });

  it("can be unmuted, and has a note that others can read, but not those of other organizations", async () => {
    const sighting = await failing();
    await using _ = startWatch(async () => [sighting]);
    await until(async () => (await find(sighting.message)) !== undefined);
    const { id } = await find(sighting.message);
    const { call } = spine.api;
    await call.post(`/problems/${id}/mute`, { forSeconds: 60 });
    expect(await call.post(`/problems/${id}/unmute`)).toMatchObject({ mutedUntil: null, mutedBy: null });
    await call.post(`/problems/${id}/unmute`);
    const note = "Ada asks the provider.";
    expect(await call.put(`/problems/${id}`, { note })).toMatchObject({
      note,
      notedBy: expect.stringMatching(/^acc_/),
    });
    expect(await call.put(`/problems/${id}`, {})).toMatchObject({ note });
    expect(await call.put(`/problems/${id}`, { note: "  " })).toMatchObject({ note: null, notedBy: null });
    const audit = await call.get(`/audit?entity=problem&entityId=${id}`);
    expect(audit.map(({ action }: { action: string }) => action)).toEqual([
      "mute",
      "unmute",
      "update",
      "update",
    ]);
    const reader = spine.api.as(await spine.api.keyWith("problems.read"));
    expect((await reader("POST", `/problems/${id}/mute`, { forSeconds: 60 })).status).toBe(403);
    expect((await call("POST", `/problems/${id}/mute`, { forSeconds: 59 })).status).toBe(400);
    expect((await call("PUT", `/problems/${id}`, { note: "x".repeat(501) })).status).toBe(400);
  });
});
