import { describe, expect, it } from "vitest";
import type { PresetRegistration } from "../../src/verify/preset-registration.ts";
import { installApp } from "../support/channels.ts";
import { itDeep } from "../support/deep-run.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { sharedPresets } from "../support/presets.ts";
import type { Emulator, Hook } from "../support/providers/emulator.ts";
import { startMicrosoftGraph } from "../support/providers/microsoft-graph.ts";
import { CEILING_MS } from "../support/until.ts";
import { PROVIDER_SAMPLES, type ProviderSample } from "./provider-samples.ts";
import { eventually, type Registration } from "./support.ts";

const gateway = givenGateway(
  { INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
  { registrarTiming: { tickMs: 20, settleMs: 100 } },
);

it("every registration of a preset is tested with its provider", () => {
  const targets = [...sharedPresets().values()].flatMap(({ preset, registrations }) =>
    registrations.map(({ target }) => `${preset} ${target}`),
  );
  expect(PROVIDER_SAMPLES.map(({ preset, target }) => `${preset} ${target}`)).toEqual(targets);
});

const getRegistration = (sample: ProviderSample): PresetRegistration => {
  const found = sharedPresets()
    .get(sample.preset)
    ?.registrations.find(({ target }) => target === sample.target);
  if (found === undefined) throw new Error(`the preset ${sample.preset} has no target ${sample.target}`);
  return found;
};

const start = (sample: ProviderSample): Promise<Emulator> => sample.start({ clock: Date.now });

/** Samples whose registration has a property, so that a test applies to them. */
const samplesWith = (applies: (registration: PresetRegistration) => boolean): readonly ProviderSample[] =>
  PROVIDER_SAMPLES.filter((sample) => applies(getRegistration(sample)));

// Each test has a provider, an app and a channel of its own, and waits most of its time.
describe.concurrent("a registration", () => {
  it.each(
    PROVIDER_SAMPLES,
  )("at $preset ($target) creates a webhook whose deliveries verify, and removes it without those of others", async (sample) => {
    await using provider = await start(sample);
    const foreign =
      getRegistration(sample).slots === "one"
        ? undefined
        : provider.addForeign("https://other.example/hooks");
    const channel = await givenRegistered(sample, provider);
    await channel.untilState("active");
    await channel.untilDelivered();
    await channel.remove();
    expect(provider.hooks()).toEqual(foreign === undefined ? [] : [foreign]);
  });

  itDeep.each(samplesWith(({ check, list }) => check !== undefined || list !== undefined))(
    "at $preset ($target) creates the webhook again that the provider has dropped",
    async (sample) => {
      await using provider = await start(sample);
      const channel = await givenRegistered(sample, provider);
      await channel.untilState("active");
      const before = await eventually(() => channel.onlyHook());
      provider.drop(before.id);
      await gateway.api("POST", `${channel.path}/registration/check`, {});
      await eventually(() => channel.onlyHook());
      await channel.untilState("active");
      await channel.untilDelivered();
      await channel.remove();
    },
  );

  it.each(
    samplesWith(({ slots, check }) => slots === "one" && check !== undefined),
  )("at $preset ($target) does not replace the only webhook of another program", async (sample) => {
    await using provider = await start(sample);
    const foreign = provider.addForeign("https://other.example/hooks");
    const channel = await givenRegistered(sample, provider);
    expect((await channel.untilState("failed")).lastError).toMatchObject({ code: "slot_taken" });
    expect(provider.hooks()).toEqual([foreign]);
    await channel.remove();
    expect(provider.hooks()).toEqual([foreign]);
  });

  it.each(samplesWith(namesLimit))("at $preset ($target) names the provider's limit", async (sample) => {
    await using provider = await start(sample);
    provider.setQuota(0);
    const channel = await givenRegistered(sample, provider);
    const { lastError } = await channel.untilState("failed");
    expect(lastError).toMatchObject({ code: "quota" });
    await channel.remove();
  });

  it.each(
    samplesWith((registration) => namedPermissions(registration).length > 0),
  )("at $preset ($target) names the permission that the credentials lack", async (sample) => {
    await using provider = await start(sample);
    const channel = await givenRegistered(sample, { ...provider, token: provider.limitedToken });
    const { lastError } = await channel.untilState("failed");
    expect(lastError?.code).toMatch(/^(?:needsReauth|gone)$/);
    const permissions = namedPermissions(getRegistration(sample));
    expect(permissions.some((text) => lastError?.message.includes(text))).toBe(true);
  });

  it.each(
    samplesWith(({ renew }) => renew !== undefined),
  )("at $preset ($target) renews the webhook before it expires", async (sample) => {
    await using provider = await start(sample);
    const channel = await givenRegistered(sample, provider);
    const { expiresAt } = await channel.untilIdle();
    const before = await eventually(() => channel.onlyHook());
    const differenceMs = Date.parse(expiresAt ?? "") - (before.expiresAtMs ?? Number.NaN);
    expect(Math.abs(differenceMs)).toBeLessThan(CEILING_MS);
    await gateway.stores.db
      .updateTable("registrations")
      .set({ renewAt: new Date(0), nextAt: new Date(0) })
      .where("channelUid", "=", "hooks")
      .where("appId", "=", channel.appId)
      .execute();
    await eventually(() =>
      expect(channel.onlyHook().expiresAtMs).toBeGreaterThan(before.expiresAtMs ?? Number.POSITIVE_INFINITY),
    );
    await channel.untilState("active");
    await channel.untilDelivered();
    await channel.remove();
  });

  itDeep.each(samplesWith(({ secret }) => secret === "ours"))(
    "at $preset ($target) gives the provider a new secret, with one webhook left",
    async (sample) => {
      await using provider = await start(sample);
      const channel = await givenRegistered(sample, provider);
      await channel.untilState("active");
      const secret = "a-secret-that-a-person-chose";
      await gateway.api("PUT", channel.path, { config: { secrets: [{ value: secret }] } });
      await eventually(() =>
        expect(channel.onlyHook()).toMatchObject(
          channel.onlyHook().channelToken === undefined ? { secret } : { channelToken: secret },
        ),
      );
      await channel.untilState("active");
      await channel.untilDelivered();
      await channel.remove();
    },
  );

  itDeep.each(samplesWith(({ events }) => events !== undefined))(
    "at $preset ($target) changes the event types with the definitions, with one webhook left",
    async (sample) => {
      await using provider = await start(sample);
      const channel = await givenRegistered(sample, provider);
      await channel.untilState("active");
      const [all = "*"] = getRegistration(sample).events?.all ?? [];
      const type = all === "*" ? "push" : all;
      await gateway.api("PUT", channel.path, { events: [{ type }] });
      await eventually(() => expect(channel.onlyHook()).toMatchObject({ events: [type] }));
      await channel.untilState("active");
      await channel.remove();
    },
  );

  itDeep.each(
    // The address of a Pub/Sub subscription belongs to the person who created it, and a hub keeps the old address until its lease ends.
    PROVIDER_SAMPLES.filter(({ prepare, endsWithLease }) => prepare === undefined && endsWithLease !== true),
  )("at $preset ($target) gives the provider a new address, with one webhook left", async (sample) => {
    await using provider = await start(sample);
    const channel = await givenRegistered(sample, provider);
    await channel.untilState("active");
    const { url } = await gateway.api<{ url: string }>("POST", `${channel.path}/rotate`, {});
    await eventually(() => expect(provider.hooks().map(({ address }) => address)).toEqual([url]));
    await channel.untilState("active");
    await channel.remove();
    expect(provider.hooks()).toEqual([]);
  });
});

/** Texts of which an error message contains one if the credentials lack a permission. */
function namedPermissions({ errors, connection }: PresetRegistration): readonly string[] {
  const named = errors.filter(({ means }) => means === "scope").map(({ message }) => message);
  return [...named, ...(connection?.scopes ?? [])];
}

function namesLimit({ errors }: PresetRegistration): boolean {
  return errors.some(({ means }) => means === "quota");
}

/** Creates a channel that registers itself at the provider, with a connection if the provider needs one. */
async function givenRegistered(sample: ProviderSample, provider: Emulator) {
  const { preset, target, params, basePath = "", config, prepare } = sample;
  const credentials = sample.connection?.(provider) ?? {
    kind: "bearer",
    config: { token: provider.token },
  };
  const connection = sample.isOpen
    ? undefined
    : await gateway.api<{ id: string }>("POST", "/connections", {
        name: preset,
        allowedOrigins: [provider.url],
        ...credentials,
      });
  const app = await installApp(gateway, []);
  const path = `/apps/${app.id}/channels/hooks`;
  const { url } = await gateway.api<{ url: string }>("POST", `/apps/${app.id}/channels`, {
    uid: "hooks",
    kind: "webhook",
    config: { preset, ...(typeof config === "function" ? config(provider) : config) },
    events: [{ type: "any", typePath: null }],
  });
  await prepare?.(provider, url);
  await gateway.api("PUT", path, {
    config: {
      registration: {
        ...(connection && { connectionId: connection.id }),
        target,
        ...(typeof params === "function"
          ? { params: params(provider) }
          : { params, baseUrl: provider.url + basePath }),
      },
    },
  });
  const hooks = (): readonly Hook[] => provider.hooks().filter(({ address }) => address === url);
  return {
    appId: app.id,
    path,
    onlyHook(): Hook {
      const [hook, ...others] = hooks();
      if (hook === undefined || others.length > 0) throw new Error(`${hooks().length} webhooks`);
      return hook;
    },
    /** Deletes the channel, and waits until Inlet needs the provider no longer. */
    async remove(): Promise<void> {
      await gateway.api("DELETE", path);
      await eventually(async () => {
        const left = await gateway.api<readonly { appId: string }[]>("GET", "/registrations");
        expect(left.filter(({ appId }) => appId === app.id)).toEqual([]);
      });
      if (sample.endsWithLease !== true) return expect(hooks()).toEqual([]);
      for (const { id } of hooks()) provider.drop(id);
    },
    /** Waits until one webhook delivers and the gateway, which learns a new secret within a second, accepts the delivery. */
    untilDelivered: (): Promise<void> =>
      eventually(async () => {
        const results = (await provider.deliver()).filter(({ hook }) => hook.address === url);
        expect(results).toMatchObject([{ status: 200 }]);
      }),
    /** Waits until the registration is active and its next check is far away. */
    untilIdle: (): Promise<Registration & { readonly nextAt: string }> =>
      eventually(async () => {
        const found = await gateway.api<Registration & { nextAt: string }>("GET", `${path}/registration`);
        expect(found).toMatchObject({ state: "active" });
        expect(Date.parse(found.nextAt)).toBeGreaterThan(Date.now() + CEILING_MS);
        return found;
      }),
    untilState: (state: string): Promise<Registration> =>
      eventually(async () => {
        const found = await gateway.api<Registration>("GET", `${path}/registration`);
        expect(found).toMatchObject({ state });
        return found;
      }),
  };
}

describe("a lifecycle notification of Microsoft Graph", () => {
  it("extends the registration or checks it, and is not published", async () => {
    await using graph = await startMicrosoftGraph({ clock: Date.now });
    const connection = await gateway.api<{ id: string }>("POST", "/connections", {
      name: "Graph",
      kind: "bearer",
      config: { token: graph.token },
      allowedOrigins: [graph.url],
    });
    const app = await installApp(gateway, []);
    const params = { resource: "me/messages" };
    await gateway.api("POST", `/apps/${app.id}/channels`, {
      uid: "hooks",
      kind: "webhook",
      config: {
        preset: "microsoft-graph",
        registration: { connectionId: connection.id, baseUrl: graph.url, params },
      },
      events: [{ type: "created" }],
    });
    const path = `/apps/${app.id}/channels/hooks/registration`;
    const read = () => gateway.api<Registration>("GET", path);
    await eventually(async () => expect(await read()).toMatchObject({ state: "active" }));
    const sent = (method: string) => graph.requests.filter((request) => request.method === method).length;
    expect(await graph.notifyLifecycle("reauthorizationRequired")).toMatchObject([{ status: 200 }]);
    await eventually(() => expect(sent("PATCH")).toBe(1));
    const [hook] = graph.hooks();
    expect(await graph.notifyLifecycle("subscriptionRemoved")).toMatchObject([{ status: 200 }]);
    await eventually(() => expect(graph.hooks()).toHaveLength(1));
    expect(graph.hooks()[0]?.id).not.toBe(hook?.id);
    expect(await gateway.api("GET", `/apps/${app.id}/quarantine`)).toEqual([]);
  });
});
