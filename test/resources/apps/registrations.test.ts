import { describe, expect, it, vi } from "vitest";
import { installApp } from "../../support/channels.ts";
import { givenGateway } from "../../support/given-gateway.ts";
import { opened } from "../../support/opened.ts";
import type { Emulator } from "../../support/providers/emulator.ts";
import { startGitHub } from "../../support/providers/github.ts";
import { CEILING_MS } from "../../support/until.ts";

const eventually = <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: CEILING_MS, interval: 20 });

const gateway = givenGateway(
  { INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
  { registrarTiming: { tickMs: 50, settleMs: 100 } },
);
const github = opened<Emulator>(() => startGitHub({ clock: Date.now }));

interface Registration {
  readonly id: string;
  readonly state: string;
  readonly providerId: string | null;
  readonly lastError: { readonly code: string; readonly message: string } | null;
}

async function givenConnection(token = github.token, allowedOrigins = [github.url]): Promise<string> {
  const { id } = await gateway.api<{ id: string }>("POST", "/connections", {
    name: "GitHub",
    kind: "bearer",
    config: { token },
    allowedOrigins,
  });
  return id;
}

let lastRepo = 0;

/** Creates an app with a channel that registers itself at a new repository. */
async function givenRegistered(registration: object = {}, events?: readonly object[]) {
  const connectionId = await givenConnection();
  const repo = `repo-${++lastRepo}`;
  const app = await installApp(gateway, []);
  const path = `/apps/${app.id}/channels`;
  const channel = await gateway.api<{ url: string }>("POST", path, {
    uid: "hooks",
    kind: "webhook",
    config: {
      preset: "github",
      registration: { connectionId, params: { owner: "acme", repo }, baseUrl: github.url, ...registration },
    },
    ...(events && { events }),
  });
  return {
    connectionId,
    path: `${path}/hooks`,
    url: channel.url,
    read: () => gateway.api<Registration>("GET", `${path}/hooks/registration`),
    hooks: () => github.hooks().filter(({ address }) => address === channel.url),
  };
}

type Registered = Awaited<ReturnType<typeof givenRegistered>>;

const untilState = ({ read }: Registered, state: string): Promise<Registration> =>
  eventually(async () => {
    const found = await read();
    expect(found).toMatchObject({ state });
    return found;
  });

describe("registration of a channel", () => {
  it("creates one webhook at the provider, whose deliveries verify", async () => {
    const channel = await givenRegistered();
    const { providerId } = await untilState(channel, "active");
    const [hook] = channel.hooks();
    expect(hook).toMatchObject({ id: providerId, events: ["*"], secret: expect.any(String) });
    const sent = await eventually(async () => {
      const results = await github.deliver({ ref: "refs/heads/main" }, "push");
      const own = results.filter((one) => one.hook.address === channel.url);
      expect(own).toMatchObject([{ status: 200 }]);
      return own;
    });
    expect(sent).toHaveLength(1);
  });

  it("removes the webhook after the channel was deleted, and then releases the connection", async () => {
    const channel = await givenRegistered();
    await untilState(channel, "active");
    await expect(gateway.api("DELETE", `/connections/${channel.connectionId}`)).rejects.toThrow(
      "the registration of the channel hooks",
    );
    await gateway.api("DELETE", channel.path);
    await eventually(() => expect(channel.hooks()).toEqual([]));
    await eventually(() => gateway.api("DELETE", `/connections/${channel.connectionId}`));
  });

  it("updates the webhook after the address was rotated, without a second one", async () => {
    const channel = await givenRegistered();
    const { providerId } = await untilState(channel, "active");
    const rotated = await gateway.api<{ url: string }>("POST", `${channel.path}/rotate`, {});
    await eventually(() =>
      expect(github.hooks().filter(({ address }) => address === rotated.url)).toMatchObject([
        { id: providerId },
      ]),
    );
    expect(channel.hooks()).toEqual([]);
  });

  it("subscribes to the types of the definitions, and to changed ones", async () => {
    const channel = await givenRegistered({}, [{ type: "push" }, { type: "issues" }]);
    await untilState(channel, "active");
    expect(channel.hooks()).toMatchObject([{ events: ["issues", "push"] }]);
    await gateway.api("PUT", channel.path, { events: [{ type: "release" }] });
    await eventually(() => expect(channel.hooks()).toMatchObject([{ events: ["release"] }]));
  });

  it("creates the webhook again that somebody deleted at the provider", async () => {
    const channel = await givenRegistered();
    const { providerId } = await untilState(channel, "active");
    github.drop(providerId ?? "");
    await gateway.api("POST", `${channel.path}/registration/check`, {});
    await eventually(() => expect(channel.hooks()).toHaveLength(1));
    const again = await untilState(channel, "active");
    expect(again.providerId).not.toBe(providerId);
  });

  it("leaves a webhook with its address alone that Inlet did not create", async () => {
    const connectionId = await givenConnection();
    const app = await installApp(gateway, []);
    const path = `/apps/${app.id}/channels/hooks`;
    const { url } = await gateway.api<{ url: string }>("POST", `/apps/${app.id}/channels`, {
      uid: "hooks",
      kind: "webhook",
      config: { preset: "github", secrets: [{ value: "secret of a person" }] },
    });
    const foreign = github.addForeign(url);
    const registration = { connectionId, params: { owner: "acme", repo: "shop" }, baseUrl: github.url };
    await gateway.api("PUT", path, { config: { registration } });
    const { lastError } = await eventually(async () => {
      const found = await gateway.api<Registration>("GET", `${path}/registration`);
      expect(found).toMatchObject({ state: "failed" });
      return found;
    });
    expect(lastError).toMatchObject({ code: "foreign" });
    await gateway.api("DELETE", path);
    expect(github.hooks().filter(({ address }) => address === url)).toEqual([foreign]);
    github.drop(foreign.id);
  });

  it("shows its requests without secrets and without sending them", async () => {
    const channel = await givenRegistered();
    await untilState(channel, "active");
    const before = github.requests.length;
    const { requests } = await gateway.api<{ requests: readonly { step: string; body: string | null }[] }>(
      "POST",
      `${channel.path}/registration/dryRun`,
      {},
    );
    expect(requests.map(({ step }) => step)).toEqual(["list", "create", "check", "update", "remove"]);
    const secret = channel.hooks()[0]?.secret;
    expect(JSON.stringify(requests)).not.toContain(secret);
    expect(JSON.stringify(requests)).not.toContain(github.token);
    expect(github.requests.length).toBe(before);
  });

  it("names the missing permission, and retries once the connection was changed", async () => {
    const connectionId = await givenConnection(github.limitedToken);
    const channel = await givenRegistered({ connectionId });
    const { lastError } = await untilState(channel, "failed");
    expect(lastError?.message).toContain("Webhooks: write");
    await gateway.api("PUT", `/connections/${connectionId}`, { config: { token: github.token } });
    await untilState(channel, "active");
  });
});

describe("a registration of an installation", () => {
  it("registers the channel of a blueprint, and stays after an upgrade", async () => {
    const connectionId = await givenConnection();
    const channels = [{ uid: "hooks", kind: "webhook", config: { preset: "github" } }];
    const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", { title: "GitHub", channels });
    const registration = { connectionId, params: { owner: "acme", repo: "installed" }, baseUrl: github.url };
    const app = await gateway.api<{ id: string; channels: readonly { url: string }[] }>(
      "POST",
      "/apps/install",
      {
        blueprintId: blueprint.id,
        channels: { hooks: { registration } },
      },
    );
    const hooks = () => github.hooks().filter(({ address }) => address === app.channels[0]?.url);
    await eventually(() => expect(hooks()).toMatchObject([{ events: ["*"] }]));
    const events = [{ type: "push" }];
    await gateway.api("PUT", `/blueprints/${blueprint.id}`, { channels: [{ ...channels[0], events }] });
    await gateway.api("POST", `/apps/${app.id}/upgrade`, {});
    await eventually(() => expect(hooks()).toMatchObject([{ events: ["push"] }]));
    // An upgrade does not turn verification off, so the channel keeps its preset and registration.
    const unverified = [{ ...channels[0], config: {}, events: [{ type: "issues" }] }];
    await gateway.api("PUT", `/blueprints/${blueprint.id}`, { channels: unverified });
    await gateway.api("POST", `/apps/${app.id}/upgrade`, {});
    await eventually(() => expect(hooks()).toMatchObject([{ events: ["issues"] }]));
    await gateway.api("DELETE", `/apps/${app.id}`);
    await eventually(() => expect(hooks()).toEqual([]));
  });

  it("cannot be a part of the blueprint", async () => {
    const connectionId = await givenConnection();
    const registration = { connectionId, params: { owner: "acme", repo: "shop" } };
    const channels = [{ uid: "hooks", kind: "webhook", config: { preset: "github", registration } }];
    await expect(gateway.api("POST", "/blueprints", { title: "GitHub", channels })).rejects.toThrow(
      "belongs to one installation",
    );
  });
});

describe("settings of a registration", () => {
  const create = async (registration: object, config: object = { preset: "github" }) => {
    const app = await installApp(gateway, []);
    return gateway.api("POST", `/apps/${app.id}/channels`, {
      uid: "hooks",
      kind: "webhook",
      config: { ...config, registration },
    });
  };
  const params = { owner: "acme", repo: "shop" };

  it.each([
    ["a preset without registrations", { preset: "tally" }, { params }, "config.registration"],
    ["no preset", {}, { params }, "config.registration"],
    ["an unknown target", { preset: "github" }, { params, target: "team" }, "config.registration.target"],
    [
      "a missing parameter",
      { preset: "github" },
      { params: { owner: "acme" } },
      "config.registration.params.repo",
    ],
    [
      "an invalid parameter",
      { preset: "github" },
      { params: { ...params, owner: "not an owner" } },
      '"config.registration.params.owner","message":"must match',
    ],
    [
      "a placeholder in the base URL",
      { preset: "github" },
      { params, baseUrl: "https://api.github.com/{{secret}}" },
      "config.registration.baseUrl",
    ],
    [
      "a query in the base URL",
      { preset: "github" },
      { params, baseUrl: "https://api.github.com?path=" },
      "config.registration.baseUrl",
    ],
  ])("rejects %s", async (_, config, registration, path) => {
    const connectionId = await givenConnection();
    await expect(create({ connectionId, ...registration }, config)).rejects.toThrow(path);
  });

  it("rejects a connection that does not allow the provider's origin", async () => {
    const connectionId = await givenConnection(github.token, ["https://other.example"]);
    await expect(create({ connectionId, params, baseUrl: github.url })).rejects.toThrow(github.url);
  });

  it("rejects a hooks URL that the provider cannot reach, and names the tunnel", async () => {
    const connectionId = await givenConnection(github.token, ["https://api.github.com"]);
    await expect(create({ connectionId, params })).rejects.toThrow("INLET_HOOKS_URL");
  });
});
