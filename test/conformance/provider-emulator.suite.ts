import { describe, expect, it } from "vitest";
import type { Emulator, Hook, StartEmulator } from "../support/providers/emulator.ts";
import { type Receiver, startReceiver } from "../support/providers/receiver.ts";
import { until } from "../support/until.ts";

/** A request to a provider's API. */
export interface ApiRequest {
  /** Method, path and query, such as `GET /hooks`. `{token}` is the emulator's token. */
  readonly on: string;
  readonly json?: unknown;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The status of an error response, and a text in its body. */
export type ErrorResponse = readonly [status: number, text: string];

export interface ProviderSamples {
  readonly preset: string;
  /** Kind of object that sends, for presets with several. */
  readonly object?: string;
  readonly start: StartEmulator;
  /** Request that is needed before the first `create`. */
  readonly prepare?: (address: string) => ApiRequest;
  readonly create: (address: string) => ApiRequest;
  /** Requests by the stored webhook. A provider without such a request leaves it out. */
  readonly list?: ApiRequest;
  readonly check?: (hook: Hook) => ApiRequest;
  readonly renew?: (hook: Hook) => ApiRequest;
  readonly update?: (hook: Hook, address: string) => ApiRequest;
  readonly remove: (hook: Hook) => ApiRequest;
  /** Headers that authenticate a request. By default, the token follows `Bearer`. */
  readonly authorize?: (token: string) => Readonly<Record<string, string>>;
  /** Request that the provider rejects, and its response. */
  readonly invalid: readonly [ApiRequest, ErrorResponse];
  readonly unauthorized?: ErrorResponse;
  readonly limited?: ErrorResponse;
  readonly gone?: ErrorResponse;
  readonly quota?: ErrorResponse;
  /** Response to a second registration of the same address. Left out if the provider stores it. */
  readonly exists?: ErrorResponse;
  /** Lifetime of the sample. Left out if registrations do not expire. */
  readonly lifetimeMs?: number;
  /** Number of handshakes or pings that a create causes. */
  readonly handshakes?: number;
  /** Returns the secret in the response to `create`, for providers that choose it. */
  readonly createdSecret?: (created: string) => unknown;
  /** Path of the delivery id, as in the preset. `none` if deliveries have no id. */
  readonly idPath: string;
  /** Reason why the provider keeps a registration after a request to remove it. Left out if it removes the registration. */
  readonly keepsRemoved?: string;
  /** Whether the provider stores one webhook only. */
  readonly isSingle?: boolean;
  /** Settings of the channel that differ from those of the preset. */
  readonly config?: object;
  /** Returns documents with keys, for signatures of which the provider alone has the private key. */
  readonly fetchKeys?: (emulator: Emulator) => string;
}

/** Secret of samples whose provider lets the caller choose it. */
export const OUR_SECRET = "Our5ecretOf32CharactersForSamples";

/** Time of the clock when a test begins. */
export const STARTED_AT_MS = Date.parse("2026-01-01T00:00:00Z");

interface World extends AsyncDisposable {
  readonly emulator: Emulator;
  readonly receiver: Receiver;
  readonly ahead: (ms: number) => void;
  readonly call: (request: ApiRequest, token?: string) => Promise<{ status: number; body: string }>;
  /** Creates the sample webhook and waits for its handshakes. */
  readonly register: () => Promise<{ readonly hook: Hook; readonly created: string }>;
}

/** Describes the behavior that the tests of registrations rely on, for one provider. */
export function describeProvider(samples: ProviderSamples): void {
  const { preset, invalid, unauthorized, limited, gone, quota, exists, lifetimeMs } = samples;
  const { object, list, check, renew, update } = samples;

  async function expectError(response: Promise<{ status: number; body: string }>, error: ErrorResponse) {
    const [status, text] = error;
    expect(await response).toEqual({ status, body: expect.stringContaining(text) });
  }

  describe(`provider emulator ${[preset, object].join(" ").trim()}`, () => {
    it("sends verified deliveries until the registration is removed", async () => {
      await using world = await startWorld(samples);
      const { emulator, receiver, call } = world;
      const { hook, created } = await world.register();
      expect(hook.address).toBe(receiver.address);
      expect(samples.createdSecret?.(created)).toBe(samples.createdSecret && hook.secret);
      if (list !== undefined) expect((await call(list)).body).toContain(receiver.address);
      if (check !== undefined) expect((await call(check(hook))).status).toBe(200);

      const before = receiver.deliveries().length;
      expect(await emulator.deliver()).toEqual([{ hook, status: 200 }]);
      expect(await emulator.redeliver()).toEqual([{ hook, status: 200 }]);
      expect(await emulator.deliver()).toEqual([{ hook, status: 200 }]);
      const ids = receiver
        .deliveries()
        .slice(before)
        .map((request) => readId(samples.idPath, request));
      expect(ids[0]).toEqual(ids[1]);
      if (samples.idPath !== "none") expect(ids[2]).not.toEqual(ids[0]);

      expect((await call(samples.remove(hook))).status).toBeLessThan(300);
      if (samples.keepsRemoved !== undefined) return;
      await until(() => emulator.hooks().length === 0);
      expect(await emulator.deliver()).toEqual([]);
      if (gone !== undefined) await expectError(call((check ?? samples.remove)(hook)), gone);
    });

    it("forgets a registration that was dropped", async () => {
      await using world = await startWorld(samples);
      const { emulator, receiver, call } = world;
      const { hook } = await world.register();
      emulator.drop(hook.id);
      expect(emulator.hooks()).toEqual([]);
      expect(await emulator.deliver()).toEqual([]);
      if (list !== undefined) expect((await call(list)).body).not.toContain(receiver.address);
      if (gone !== undefined) await expectError(call((check ?? samples.remove)(hook)), gone);
    });

    it("keeps registrations of other programs", async ({ skip }) => {
      const reason = samples.isSingle ? "the provider stores one registration only" : samples.keepsRemoved;
      if (reason !== undefined) return skip(reason);
      await using world = await startWorld(samples);
      const { emulator, call } = world;
      const foreign = emulator.addForeign(`${world.receiver.address}/foreign`);
      const { hook } = await world.register();
      if (list !== undefined) expect((await call(list)).body).toContain(foreign.address);
      await call(samples.remove(hook));
      await until(() => emulator.hooks().length === 1);
      expect(emulator.hooks()).toEqual([foreign]);
    });

    it("rejects invalid requests, wrong tokens and missing permissions", async () => {
      await using world = await startWorld(samples);
      const { emulator, call, receiver } = world;
      const create = samples.create(receiver.address);
      const [request, error] = invalid;
      await expectError(call(request), error);
      if (unauthorized !== undefined) await expectError(call(create, "wrong"), unauthorized);
      if (limited !== undefined) await expectError(call(create, emulator.limitedToken), limited);
      expect(emulator.hooks()).toEqual([]);
    });

    itIf(exists !== undefined, "rejects a second registration of the same address", async () => {
      await using world = await startWorld(samples);
      await world.register();
      if (exists !== undefined) await expectError(world.call(samples.create(world.receiver.address)), exists);
      expect(world.emulator.hooks()).toHaveLength(1);
    });

    itIf(quota !== undefined, "rejects registrations over its limit", async () => {
      await using world = await startWorld(samples);
      const { emulator, call, receiver } = world;
      emulator.setQuota(1);
      emulator.addForeign(`${receiver.address}/foreign`);
      if (quota !== undefined) await expectError(call(samples.create(receiver.address)), quota);
      expect(emulator.hooks()).toHaveLength(1);
    });

    itIf(update !== undefined, "changes the address", async () => {
      await using world = await startWorld(samples);
      const { hook } = await world.register();
      const address = `${world.receiver.address}?changed`;
      const response = await world.call((update ?? fail)(hook, address));
      expect(response).toEqual({ status: expect.any(Number), body: expect.not.stringContaining("error") });
      await until(() => world.emulator.hooks()[0]?.address === address);
    });

    itIf(lifetimeMs !== undefined, "ends a registration that was not renewed", async () => {
      await using world = await startWorld(samples);
      const { emulator, call } = world;
      const { hook } = await world.register();
      const lifetime = lifetimeMs ?? 0;
      expect(hook.expiresAtMs).toBe(STARTED_AT_MS + lifetime);
      world.ahead(lifetime - 1_000);
      if (renew !== undefined) {
        expect((await call(renew(hook))).status).toBeLessThan(300);
        await until(() => emulator.hooks()[0]?.expiresAtMs === STARTED_AT_MS + 2 * lifetime - 1_000);
        world.ahead(2_000);
        expect(await emulator.deliver()).toHaveLength(1);
        world.ahead(lifetime);
      }
      world.ahead(1_000);
      expect(emulator.hooks()).toEqual([]);
      expect(await emulator.deliver()).toEqual([]);
      if (gone !== undefined) await expectError(call((check ?? samples.remove)(hook)), gone);
    });

    it("injects faults before and after it has acted", async () => {
      await using world = await startWorld(samples);
      const { emulator, call, receiver } = world;
      const create = samples.create(receiver.address);
      emulator.failNext("create", { status: 503, body: "down", headers: { "retry-after": "7" } });
      expect(await call(create)).toEqual({ status: 503, body: "down" });
      emulator.failNext("create", { lost: "request" });
      await expect(call(create)).rejects.toThrow("fetch failed");
      expect(emulator.hooks()).toEqual([]);
      emulator.failNext("create", { lost: "response" });
      await expect(call(create)).rejects.toThrow("fetch failed");
      await until(() => emulator.hooks().length === 1);
    });
  });
}

const fail = (): never => {
  throw new Error("the samples lack this request");
};

async function startWorld({ preset, start, ...samples }: ProviderSamples): Promise<World> {
  await using starting = new AsyncDisposableStack();
  let nowMs = STARTED_AT_MS;
  const clock = (): number => nowMs;
  const emulator = starting.use(await start({ clock, appSecret: OUR_SECRET }));
  const { fetchKeys } = samples;
  const receiver = starting.use(
    await startReceiver({
      preset,
      clock,
      config: samples.config,
      ...(fetchKeys && { fetchKeys: () => fetchKeys(emulator) }),
    }),
  );
  receiver.setSecret(samples.createdSecret === undefined ? OUR_SECRET : undefined);
  const call: World["call"] = async ({ on, json, form, headers }, token = emulator.token) => {
    const [method = "", path = ""] = on.replaceAll("{token}", encodeURIComponent(token)).split(" ");
    const authorization = samples.authorize?.(token) ?? { authorization: `Bearer ${token}` };
    const response = await fetch(emulator.url + path, {
      method,
      headers: {
        ...(json === undefined ? {} : { "content-type": "application/json" }),
        ...authorization,
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      ...(form && { body: new URLSearchParams(form) }),
    });
    return { status: response.status, body: await response.text() };
  };
  if (samples.prepare !== undefined) await call(samples.prepare(receiver.address));
  const owned = starting.move();
  return {
    emulator,
    receiver,
    ahead(ms) {
      nowMs += ms;
    },
    call,
    async register() {
      const { status, body } = await call(samples.create(receiver.address));
      if (status >= 300) throw new Error(`create failed with ${status}: ${body}`);
      const isOurs = ({ address, isPending }: Hook): boolean =>
        address === receiver.address && isPending !== true;
      await until(() => emulator.hooks().some(isOurs));
      const hook = emulator.hooks().find(isOurs) ?? fail();
      await until(() => receiver.received.length >= (samples.handshakes ?? 0));
      expect(receiver.received.filter(({ kind }) => kind === "rejected")).toEqual([]);
      receiver.setSecret(hook.secret);
      return { hook, created: body };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Reads a delivery's id at a path such as `$headers['x-id']` or `$.id`. */
function readId(path: string, request: { headers: object; body: Buffer }): unknown {
  const header = /^\$headers\['(.+)'\]$/.exec(path)?.[1];
  if (header !== undefined) return Object.entries(request.headers).find(([name]) => name === header)?.[1];
  if (path === "none") return undefined;
  const names = path.split(".").slice(1);
  return names.reduce<unknown>(
    (value, name) => Object.entries(value ?? {}).find(([key]) => key === name)?.[1],
    JSON.parse(String(request.body)),
  );
}

/** Registers a test only for emulators to which it applies, so that it is not reported as skipped. */
function itIf(applies: boolean, name: string, test: () => Promise<void>): void {
  if (applies) it(name, test);
}
