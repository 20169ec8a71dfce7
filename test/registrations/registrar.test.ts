import { afterEach, describe, expect, it } from "vitest";
import { startGitHub } from "../support/providers/github.ts";
import { eventually, type RegisterOptions, type RegistrationRig, startRegistrationRig } from "./support.ts";

let rig: RegistrationRig | undefined;
afterEach(async () => {
  await rig?.[Symbol.asyncDispose]();
  rig = undefined;
});

/** Starts a rig without a worker, so that a test can prepare faults first. */
async function givenGitHub(): Promise<RegistrationRig> {
  rig = await startRegistrationRig(startGitHub);
  return rig;
}

const REPOSITORY: RegisterOptions = { preset: "github", params: { owner: "acme", repo: "shop" } };

describe("a lost response", () => {
  it.each([
    "request",
    "response",
  ] as const)("to the creation leads to exactly one webhook if the %s was lost", async (lost) => {
    const { provider, register, startWorker, passSeconds } = await givenGitHub();
    provider.failNext("create", { lost });
    startWorker();
    const channel = await register(REPOSITORY);
    await channel.untilState("failed");
    passSeconds(3_600);
    const { providerId } = await channel.untilState("active");
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
  });

  it("to the removal leads to a repeated removal, which ends with 404", async () => {
    const { api, provider, register, startWorker, passSeconds } = await givenGitHub();
    startWorker();
    const channel = await register(REPOSITORY);
    await channel.untilState("active");
    provider.failNext("remove", { lost: "response" });
    await api.call.delete(channel.path);
    await eventually(() => expect(channel.hooks()).toEqual([]));
    await eventually(async () =>
      expect(await api.call.get("/registrations")).toMatchObject([{ lastError: expect.anything() }]),
    );
    passSeconds(3_600);
    await eventually(async () => expect(await api.call.get("/registrations")).toEqual([]));
  });

  it("to an update is repeated until the provider has the new address", async () => {
    const { api, provider, register, startWorker, passSeconds } = await givenGitHub();
    startWorker();
    const channel = await register(REPOSITORY);
    const { providerId } = await channel.untilState("active");
    provider.failNext("update", { lost: "request" });
    const { url } = await api.call.post(`${channel.path}/rotate`, {});
    await channel.untilState("failed");
    expect(provider.hooks()).toMatchObject([{ id: providerId, address: channel.url }]);
    passSeconds(3_600);
    await eventually(() => expect(provider.hooks()).toMatchObject([{ id: providerId, address: url }]));
    await channel.untilState("active");
  });
});

describe("a worker that died", () => {
  it("during the creation is replaced by another one, which finds the webhook", async () => {
    const { provider, register, startWorker } = await givenGitHub();
    provider.failNext("create", { delayMs: 300 });
    const dying = startWorker({ timing: { leaseMs: 2_000 } });
    const channel = await register(REPOSITORY);
    await eventually(() => expect(provider.requests.some(({ method }) => method === "POST")).toBe(true));
    // The worker aborts its request, which the provider completes, and stores nothing.
    await dying[Symbol.asyncDispose]();
    startWorker();
    const { providerId } = await channel.untilState("active");
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
  });

  it("leaves no webhook if its channel is deleted before the response to the creation arrives", async () => {
    const { api, provider, register, startWorker } = await givenGitHub();
    provider.failNext("create", { delayMs: 200 });
    startWorker();
    const channel = await register(REPOSITORY);
    await eventually(() => expect(provider.requests.some(({ method }) => method === "POST")).toBe(true));
    await api.call.delete(channel.path);
    await eventually(async () => expect(await api.call.get("/registrations")).toEqual([]));
    expect(provider.hooks()).toEqual([]);
  });
});

describe("several workers", () => {
  it("create exactly one webhook for each of many channels", async () => {
    const { provider, connect, register, startWorker } = await givenGitHub();
    for (let worker = 0; worker < 3; worker++) startWorker();
    const connectionId = await connect();
    const channels = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        register({ preset: "github", params: { owner: "acme", repo: `repo-${at}` }, connectionId }),
      ),
    );
    for (const channel of channels) await channel.untilState("active");
    expect(new Set(provider.hooks().map(({ address }) => address)).size).toBe(20);
    expect(provider.hooks()).toHaveLength(20);
  });
});

describe("a check", () => {
  it("runs once a day, and creates a webhook again that the provider has lost", async () => {
    const { provider, register, startWorker, passDays } = await givenGitHub();
    startWorker();
    const channel = await register(REPOSITORY);
    const { providerId, checkedAt } = await channel.untilState("active");
    passDays(1.01);
    await eventually(async () => expect((await channel.read()).checkedAt).not.toBe(checkedAt));
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
    provider.drop(providerId ?? "");
    passDays(1.01);
    await eventually(() => expect(channel.hooks()).toHaveLength(1));
    const again = await channel.untilState("active");
    expect(again.providerId).not.toBe(providerId);
  });

  it("that finds a gap wakes the channel that reconciles the webhook", async () => {
    const { api, provider, register, startWorker, passDays, woken } = await givenGitHub();
    startWorker();
    const channel = await register(REPOSITORY);
    const { providerId } = await channel.untilState("active");
    const polling = {
      uid: "missed",
      kind: "polling",
      config: {
        request: { url: "https://api.example.invalid/" },
        discriminator: { by: "sequence", path: "$.n" },
      },
      events: [{ type: "push" }],
    };
    await api.call.post(channel.path.replace(/\/hooks$/, ""), polling);
    await api.database.db
      .updateTable("channels")
      .set({ config: JSON.stringify({ ...polling.config, reconciles: "hooks" }) })
      .where("uid", "=", "missed")
      .execute();
    expect(woken).toEqual([]);
    provider.drop(providerId ?? "");
    passDays(1.01);
    await eventually(() => expect(woken).toContain("missed"));
  });

  it("does not repeat the creation while the provider fails to respond", async () => {
    const { provider, register, startWorker, passDays } = await givenGitHub();
    startWorker();
    const channel = await register(REPOSITORY);
    const { providerId } = await channel.untilState("active");
    provider.failNext("check", { status: 503 });
    passDays(1.01);
    await channel.untilState("failed");
    passDays(0.1);
    await channel.untilState("active");
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
  });
});

describe("a provider's limit", () => {
  it("on webhooks is named, and the registration succeeds once there is room", async () => {
    const { provider, register, startWorker, passSeconds } = await givenGitHub();
    provider.setQuota(0);
    startWorker();
    const channel = await register({ ...REPOSITORY, events: [{ type: "push" }] });
    const { lastError } = await channel.untilState("failed");
    expect(lastError).toMatchObject({ code: "quota" });
    provider.setQuota(20);
    passSeconds(3_600);
    await channel.untilState("active");
  });

  it("on requests is obeyed: no request is sent before the time in Retry-After", async () => {
    const { provider, register, startWorker, passSeconds } = await givenGitHub();
    provider.failNext("list", { status: 429, headers: { "retry-after": "7200" } });
    startWorker();
    const channel = await register(REPOSITORY);
    const { lastError } = await channel.untilState("failed");
    expect(lastError).toMatchObject({ code: "rate_limited" });
    const sent = provider.requests.length;
    passSeconds(3_600);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(provider.requests.length).toBe(sent);
    passSeconds(3_700);
    await channel.untilState("active");
  });
});

describe("another object or hooks URL", () => {
  it("moves the webhook, and keeps the old one until the new one is active", async () => {
    const { api, provider, register, startWorker } = await givenGitHub();
    startWorker();
    const channel = await register(REPOSITORY);
    const { providerId } = await channel.untilState("active");
    provider.failNext("create", { status: 503 });
    await api.call.put(channel.path, {
      config: { registration: { params: { owner: "acme", repo: "other" } } },
    });
    await channel.untilState("failed");
    expect(channel.hooks()).toMatchObject([{ id: providerId }]);
    expect(await api.call.get("/registrations")).toMatchObject([
      { state: "removing", nextAt: null },
      { state: "failed", nextAt: expect.any(String) },
    ]);
    await api.call.post(`${channel.path}/registration/check`, {});
    await channel.untilState("active");
    await eventually(() => expect(channel.hooks()).toHaveLength(1));
    expect(channel.hooks()[0]?.id).not.toBe(providerId);
  });

  it("removes the webhook when the config has no registration any more", async () => {
    const { api, provider, register, startWorker } = await givenGitHub();
    startWorker();
    const channel = await register(REPOSITORY);
    await channel.untilState("active");
    await api.call.put(channel.path, { config: { registration: null } });
    await eventually(() => expect(provider.hooks()).toEqual([]));
    expect(await channel.read()).toMatchObject({ state: "none" });
  });

  it("suspends all registrations of a copy until an operator adopts them", async () => {
    const { api, provider, register, startWorker, passDays } = await givenGitHub();
    const original = startWorker();
    const channel = await register(REPOSITORY);
    await channel.untilState("active");
    await original[Symbol.asyncDispose]();
    await api.database.db
      .updateTable("cluster")
      .set({ registeredHooksUrl: "https://production.example" })
      .execute();
    const sent = provider.requests.length;
    startWorker();
    passDays(2);
    await channel.untilState("suspended");
    await api.call.delete(channel.path);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(provider.requests.length).toBe(sent);
    expect(provider.hooks()).toHaveLength(1);
    expect(await api.call.post("/registrations/adopt", {})).toMatchObject({ registrations: 1 });
    await eventually(() => expect(provider.hooks()).toEqual([]));
  });
});
