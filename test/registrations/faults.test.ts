import { afterEach, describe, expect, it } from "vitest";
import { findTroubledRegistrations } from "../../src/maintenance/problems/registration-checks.ts";
import { createProviderMessages } from "../../src/registrations/provider-messages.ts";
import { sharedPresets } from "../support/presets.ts";
import { startCalendly } from "../support/providers/calendly.ts";
import type { StartEmulator } from "../support/providers/emulator.ts";
import { startGitHub } from "../support/providers/github.ts";
import { startGitLab } from "../support/providers/gitlab.ts";
import { startGoogleCalendar } from "../support/providers/google-push.ts";
import { startWebSubHub } from "../support/providers/websub-hub.ts";
import { eventually, type RegisterOptions, type RegistrationRig, startRegistrationRig } from "./support.ts";

let rig: RegistrationRig | undefined;
afterEach(async () => {
  await rig?.[Symbol.asyncDispose]();
  rig = undefined;
});

async function given(start: StartEmulator): Promise<RegistrationRig> {
  rig = await startRegistrationRig(start);
  return rig;
}

const REPOSITORY: RegisterOptions = { preset: "github", params: { owner: "acme", repo: "shop" } };
const MEETINGS: RegisterOptions = { preset: "calendly", params: { organization: "ours" } };

const findProblems = ({ api: { database } }: RegistrationRig) =>
  findTroubledRegistrations({
    db: database.db,
    presets: sharedPresets(),
    hooksUrl: "https://hooks.example",
  });

describe("a response that repeats the request", () => {
  it.each([
    "list",
    "create",
  ] as const)("to the step %s reveals no secret in errors, problems and logs", async (step) => {
    const running = await given(startGitHub);
    const { provider, register, startWorker, lines } = running;
    provider.failNext(step, { status: 500, echoes: true });
    startWorker();
    const secret = "tiny";
    const channel = await register({ ...REPOSITORY, config: { secrets: [{ value: secret }] } });
    const { lastError } = await channel.untilState("failed");
    expect(lastError?.message).toMatch(
      /^The provider responded with status 500\. Its response begins with: /,
    );
    const shown = JSON.stringify([lastError, await findProblems(running), lines]);
    expect(shown).toContain(step === "create" ? "https://hooks.example/hooks/***" : "***");
    const [, token = ""] = channel.url.split("/hooks/");
    for (const hidden of [provider.token, token, `"${secret}"`, `\\"${secret}\\"`])
      expect(shown).not.toContain(hidden);
  });
});

describe("a response that is not JSON", () => {
  it("to the list prevents a second webhook", async () => {
    const { provider, register, startWorker, passSeconds } = await given(startGitHub);
    provider.failNext("create", { lost: "response" });
    provider.failNext("list", { status: 404, body: "" });
    startWorker();
    const channel = await register(REPOSITORY);
    await channel.untilState("failed");
    passSeconds(3_600);
    await eventually(() => expect(channel.hooks()).toHaveLength(1));
    await channel.untilState("failed");
    provider.failNext("list", { status: 200, body: "<html>Maintenance</html>" });
    passSeconds(3_600);
    await eventually(async () =>
      expect((await channel.read()).lastError).toMatchObject({ code: "unreadable" }),
    );
    passSeconds(3_600);
    await channel.untilState("active");
    expect(channel.hooks()).toHaveLength(1);
  });

  it("to the check does not count as the loss of the webhook", async () => {
    const { provider, register, startWorker, passDays } = await given(startGitHub);
    startWorker();
    const channel = await register(REPOSITORY);
    const { providerId } = await channel.untilState("active");
    provider.failNext("check", { status: 200, body: "<html>Maintenance</html>" });
    passDays(1.01);
    expect((await channel.untilState("failed")).lastError).toMatchObject({ code: "unreadable" });
    passDays(0.1);
    await channel.untilState("active");
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
  });
});

describe("a new secret", () => {
  it("reaches a webhook that a lost response created with the former secret", async () => {
    const { api, provider, register, startWorker, passSeconds } = await given(startCalendly);
    provider.failNext("create", { lost: "response" });
    startWorker();
    const channel = await register(MEETINGS);
    await channel.untilState("failed");
    const [lost] = channel.hooks();
    const secret = "a-secret-that-a-person-chose";
    // The provider fails until the channel was changed.
    provider.failNext("list", { status: 503 }, 2);
    await api.call.put(channel.path, { config: { secrets: [{ value: secret }] } });
    passSeconds(3_600);
    await eventually(() => {
      passSeconds(20);
      expect(channel.hooks()).toMatchObject([{ secret }]);
    });
    await channel.untilState("active");
    expect(channel.hooks()[0]?.id).not.toBe(lost?.id);
  });

  it("is accepted from the provider before it confirms it, and the former one until then", async () => {
    const { api, provider, register, startWorker } = await given(startGitHub);
    startWorker();
    const channel = await register(REPOSITORY);
    await channel.untilState("active");
    const former = channel.hooks()[0]?.secret;
    provider.failNext("update", { status: 503 });
    await api.call.put(channel.path, { config: { secrets: [{ value: "a-secret-that-a-person-chose" }] } });
    await channel.untilState("failed");
    expect(channel.hooks()).toMatchObject([{ secret: former }]);
    await api.call.post(`${channel.path}/registration/check`, {});
    await eventually(() =>
      expect(channel.hooks()).toMatchObject([{ secret: "a-secret-that-a-person-chose" }]),
    );
    await channel.untilState("active");
  });

  it("that is taken back after a lost update leads to another update", async () => {
    const { api, provider, register, startWorker, passSeconds } = await given(startGitHub);
    startWorker();
    const channel = await register({ ...REPOSITORY, events: [{ type: "push" }] });
    await channel.untilState("active");
    provider.failNext("update", { lost: "response" });
    await api.call.put(channel.path, { events: [{ type: "push" }, { type: "issues" }] });
    await channel.untilState("failed");
    expect(channel.hooks()).toMatchObject([{ events: ["issues", "push"] }]);
    await api.call.put(channel.path, { events: [{ type: "push" }] });
    passSeconds(3_600);
    await channel.untilState("active");
    expect(channel.hooks()).toMatchObject([{ events: ["push"] }]);
  });
});

describe("a registration in an outage", () => {
  it("leads to exactly one webhook if PostgreSQL is away during the creation", async () => {
    const { api, provider, register, startWorker } = await given(startGitHub);
    provider.failNext("create", { delayMs: 300 });
    startWorker({ timing: { leaseMs: 2_000 } });
    const channel = await register(REPOSITORY);
    await eventually(() => expect(provider.requests.some(({ method }) => method === "POST")).toBe(true));
    await api.database.cutOff();
    await eventually(() => expect(channel.hooks()).toHaveLength(1));
    await api.database.restore();
    const { providerId } = await channel.untilState("active");
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
  });

  it("opens a problem if the provider keeps an attempt busy until its lease ends", async () => {
    const running = await given(startGitHub);
    const { provider, register, startWorker } = running;
    provider.failNext("list", { delayMs: 1_000 });
    startWorker({ timing: { leaseMs: 200 } });
    const channel = await register(REPOSITORY);
    expect((await channel.untilState("failed")).lastError).toMatchObject({ code: "timeout" });
    expect(await findProblems(running)).toMatchObject([{ kind: "registration_failed" }]);
  });

  it("opens a problem if this version has no such target", async () => {
    const { api, register, startWorker } = await given(startGitHub);
    const channel = await register(REPOSITORY);
    await api.database.db.updateTable("registrations").set({ target: "team" }).execute();
    startWorker();
    expect((await channel.untilState("failed")).lastError).toMatchObject({ code: "unsupported" });
  });
});

describe("another connection", () => {
  const changeConnection = async ({ api }: RegistrationRig, path: string, connectionId: string) => {
    const before = await api.call.get(`${path}/registration`);
    await api.call.put(path, { config: { registration: { connectionId } } });
    return before.connectionId;
  };

  it("keeps the webhook within the same account, and releases the former connection", async () => {
    const running = await given(startGitHub);
    const { api, connect, register, startWorker } = running;
    startWorker();
    const channel = await register(REPOSITORY);
    const { providerId } = await channel.untilState("active");
    const former = await changeConnection(running, channel.path, await connect());
    await eventually(async () => expect(await channel.read()).toMatchObject({ state: "active", providerId }));
    await api.call.delete(`/connections/${former}`);
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
    await api.call.delete(channel.path);
    await eventually(() => expect(channel.hooks()).toEqual([]));
  });

  it("moves the webhook to another account, and removes it from the former one", async () => {
    const running = await given(startGitLab);
    const { provider, connect, register, startWorker } = running;
    startWorker();
    const channel = await register({
      preset: "gitlab",
      params: { project: "acme/shop" },
      basePath: "/api/v4",
    });
    const { providerId } = await channel.untilState("active");
    provider.failNext("check", { status: 404 }, 3);
    await changeConnection(running, channel.path, await connect());
    await eventually(() => expect(channel.hooks().map(({ id }) => id)).not.toContain(providerId));
    await channel.untilState("active");
    expect(channel.hooks()).toHaveLength(1);
  });
});

describe("a failed update", () => {
  it("keeps the former address valid, unless a person has ended it", async () => {
    const { api, provider, register, startWorker } = await given(startGitHub);
    startWorker();
    const channel = await register(REPOSITORY);
    await channel.untilState("active");
    const readEnds = () => api.database.db.selectFrom("channelAddresses").select("expiresAt").execute();
    provider.failNext("update", { status: 503, headers: { "retry-after": "7200" } }, 2);
    await api.call.post(`${channel.path}/rotate`, { graceSeconds: 60 });
    await channel.untilState("failed");
    const [end] = await readEnds();
    expect(Number(end?.expiresAt)).toBeGreaterThan(Date.now() + 7_200_000);
    const requests = provider.requests.length;
    await api.call.post(`${channel.path}/rotate`, { graceSeconds: 0 });
    await eventually(() => expect(provider.requests.length).toBeGreaterThan(requests));
    await channel.untilState("failed");
    expect(await readEnds()).toEqual([]);
  });
});

describe("a lapse", () => {
  it("that a person's check finds begins at the last check", async () => {
    const { api, provider, register, startWorker, passDays } = await given(startGitHub);
    startWorker();
    const channel = await register(REPOSITORY);
    const { providerId, checkedAt } = await channel.untilState("active");
    passDays(1.01);
    await eventually(async () => expect((await channel.read()).checkedAt).not.toBe(checkedAt));
    const last = (await channel.read()).checkedAt;
    provider.drop(providerId ?? "");
    provider.failNext("create", { status: 503 });
    await api.call.post(`${channel.path}/registration/check`, {});
    expect(await channel.untilState("failed")).toMatchObject({ lapsedAt: last });
  });
});

describe("a webhook whose creation was never confirmed", () => {
  it("is a problem with the start of its address after the channel was deleted, until its lifetime ends", async () => {
    const running = await given(startGoogleCalendar);
    const { api, provider, register, startWorker, passDays } = running;
    provider.failNext("create", { lost: "response" });
    startWorker();
    const channel = await register({ preset: "google-calendar", params: { calendarId: "primary" } });
    await channel.untilState("failed");
    await api.call.delete(channel.path);
    const [problem] = await eventually(async () => {
      const found = await findProblems(running);
      expect(found).toMatchObject([{ kind: "registration_orphaned" }]);
      return found;
    });
    expect(problem?.message).toContain(`Its address begins with ${channel.url.slice(0, 30)}`);
    expect(problem?.message).not.toContain(channel.url);
    passDays(8);
    await eventually(async () => expect(await api.call.get("/registrations")).toEqual([]));
  });
});

describe("the hooks URL", () => {
  it("may change until a provider has a registration", async () => {
    const running = await given(startGitHub);
    const { api, register, startWorker } = running;
    const { db } = api.database;
    await db.updateTable("cluster").set({ registeredHooksUrl: "http://127.0.0.1:8080" }).execute();
    expect(await findProblems(running)).toEqual([]);
    startWorker();
    const channel = await register(REPOSITORY);
    await channel.untilState("active");
  });

  it("suspends even registrations that were never sent after a restore", async () => {
    const running = await given(startGitHub);
    const { api, provider, register, startWorker } = running;
    const channel = await register(REPOSITORY);
    await api.database.db.updateTable("cluster").set({ registeredHooksUrl: "" }).execute();
    startWorker();
    await channel.untilState("suspended");
    expect(await findProblems(running)).toMatchObject([{ kind: "registration_failed" }]);
    expect(provider.requests).toEqual([]);
    await api.call.post("/registrations/adopt", {});
    await channel.untilState("active");
  });
});

describe("a handshake of a hub", () => {
  it("cannot set a lifetime that is longer than the requested one, or that causes constant renewals", async () => {
    const { api, provider, clock } = await given(startWebSubHub);
    const topic = "https://example.com/feed";
    const { db } = api.database;
    const app = await api.call.post("/apps/install", {
      blueprintId: (await api.call.post("/blueprints", { title: "test", channels: [] })).id,
    });
    await api.call.post(`/apps/${app.id}/channels`, {
      uid: "hooks",
      kind: "webhook",
      config: { preset: "websub", registration: { params: { hub: provider.url, topic } } },
    });
    const messages = createProviderMessages({ db, presets: sharedPresets(), clock, random: () => 1 });
    const { number } = await db
      .selectFrom("channels")
      .select("number")
      .where("uid", "=", "hooks")
      .executeTakeFirstOrThrow();
    const lifetimes: (readonly (number | null)[])[] = [];
    for (const seconds of ["1e15", "1", "432000"]) {
      const query = new URLSearchParams({ "hub.topic": topic, "hub.lease_seconds": seconds });
      const nowMs = clock();
      await messages.confirmRegistration({ number }, query);
      const row = await db.selectFrom("registrations").selectAll().executeTakeFirstOrThrow();
      const toSeconds = (at: Date | null) => at && Math.round((at.getTime() - nowMs) / 10_000) * 10;
      lifetimes.push([toSeconds(row.expiresAt), toSeconds(row.renewAt)]);
    }
    // The random part makes a renewal up to a tenth of the lifetime earlier.
    expect(lifetimes).toEqual([
      [864_000, 345_600],
      [300, 120],
      [432_000, 172_800],
    ]);
  });
});
