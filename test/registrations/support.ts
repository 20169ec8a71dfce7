import { vi } from "vitest";
import { createConnections } from "../../src/gateway/connections.ts";
import { createMetrics } from "../../src/metrics.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { type RegistrarTiming, startRegistrar } from "../../src/registrations/registrar.ts";
import { createTestApi, type TestApi } from "../support/api.ts";
import { sharedPresets } from "../support/presets.ts";
import type { Emulator, StartEmulator } from "../support/providers/emulator.ts";
import { createTestLog } from "../support/test-log.ts";
import { CEILING_MS } from "../support/until.ts";

/** Hooks URL of the test API. */
const HOOKS_URL = "https://hooks.example";
const DAY_MS = 86_400_000;

export interface Registration {
  readonly id: string;
  readonly state: string;
  readonly providerId: string | null;
  readonly expiresAt: string | null;
  readonly checkedAt: string | null;
  readonly lapsedAt: string | null;
  readonly lastError: { readonly code: string; readonly message: string } | null;
}

/** The API and workers for registrations, with a provider and a clock that the test moves. */
export interface RegistrationRig extends AsyncDisposable {
  readonly api: TestApi;
  readonly provider: Emulator;
  readonly clock: () => number;
  readonly passDays: (days: number) => void;
  readonly passSeconds: (seconds: number) => void;
  /** Starts a worker. Workers that a test leaves running are stopped at the end. */
  readonly startWorker: (options?: {
    readonly timing?: Partial<RegistrarTiming>;
    readonly hooksUrl?: string;
  }) => AsyncDisposable;
  /** Log lines of the workers. */
  readonly lines: readonly object[];
  /** Uids of the channels that a worker woke. */
  readonly woken: readonly string[];
  readonly connect: (token?: string) => Promise<string>;
  /** Adds a channel with a registration. */
  readonly register: (options: RegisterOptions) => Promise<RegisteredChannel>;
}

export interface RegisterOptions {
  readonly preset: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly target?: string;
  /** Path that follows the provider's origin in `baseUrl`. */
  readonly basePath?: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly events?: readonly object[];
  readonly connectionId?: string;
  readonly checkSeconds?: number;
}

export interface RegisteredChannel {
  readonly path: string;
  readonly url: string;
  readonly read: () => Promise<Registration>;
  readonly untilState: (state: string) => Promise<Registration>;
  /** Registrations of the channel's first address at the provider. */
  readonly hooks: () => ReturnType<Emulator["hooks"]>;
}

/** Repeats a check until it passes. Each check may be a request with queries, so more frequent checks would slow down the registrar. */
export const eventually = <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: CEILING_MS, interval: 50 });

export async function startRegistrationRig(
  startProvider: StartEmulator,
  options: { readonly kind?: string } = {},
): Promise<RegistrationRig> {
  await using starting = new AsyncDisposableStack();
  let aheadMs = 0;
  const clock = () => Date.now() + aheadMs;
  const api = starting.use(await createTestApi({ allowNetworks: ["127.0.0.0/8"] }));
  const provider = starting.use(await startProvider({ clock }));
  const outbound = starting.use(createOutbound({ allowNetworks: ["127.0.0.0/8"] }));
  const { db } = api.database;
  const { keyring } = api;
  const { log, lines } = createTestLog("debug");
  const { credentialsOf } = starting.use(createConnections({ db, keyring, outbound, clock, log }));
  const workers = starting.use(new AsyncDisposableStack());
  let made = 0;
  const woken: string[] = [];
  const owned = starting.move();

  async function connect(token = provider.token): Promise<string> {
    const { kind = "bearer" } = options;
    const connection = {
      name: `provider ${++made}`,
      kind,
      config: { token },
      allowedOrigins: [provider.url],
    };
    return (await api.call.post("/connections", connection)).id;
  }

  return {
    api,
    provider,
    clock,
    lines,
    woken,
    connect,
    passDays: (days) => {
      aheadMs += days * DAY_MS;
    },
    passSeconds: (seconds) => {
      aheadMs += seconds * 1_000;
    },
    startWorker: ({ timing, hooksUrl = HOOKS_URL } = {}) =>
      workers.use(
        startRegistrar({
          db,
          keyring,
          presets: sharedPresets(),
          hooksUrl,
          outbound,
          credentialsOf,
          clock,
          log,
          metrics: createMetrics(),
          wakes: { store: async ({ uid }) => woken.push(uid) > 0 },
          timing: { tickMs: 25, settleMs: 0, ...timing },
        }),
      ),
    async register({ preset, params, target, basePath = "", config, events, connectionId, checkSeconds }) {
      const blueprint = await api.call.post("/blueprints", { title: "test", channels: [] });
      const app = await api.call.post("/apps/install", { blueprintId: blueprint.id });
      const registration = {
        connectionId: connectionId ?? (await connect()),
        params,
        target,
        baseUrl: provider.url + basePath,
        checkSeconds,
      };
      const channel = await api.call.post(`/apps/${app.id}/channels`, {
        uid: "hooks",
        kind: "webhook",
        config: { preset, registration, ...config },
        ...(events && { events }),
      });
      const path = `/apps/${app.id}/channels/hooks`;
      const read = (): Promise<Registration> => api.call.get(`${path}/registration`);
      return {
        path,
        url: channel.url,
        read,
        untilState: (state) =>
          eventually(async () => {
            const found = await read();
            if (found.state !== state) throw new Error(`the state is ${JSON.stringify(found)}`);
            return found;
          }),
        hooks: () => provider.hooks().filter(({ address }) => address === channel.url),
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
