import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import type { RegistrationRow } from "../../src/data/registrations/registrations.ts";
import { seeded } from "../faults/rig.ts";
import { PROVIDER_SAMPLES, type ProviderSample } from "../registrations/provider-samples.ts";
import { installApp } from "../support/channels.ts";
import { createTestStores, startTestGateway, type TestGateway, type TestStores } from "../support/gateway.ts";
import { moveWallClock } from "../support/moved-clock.ts";
import { sharedPresets } from "../support/presets.ts";
import type { Emulator, Fault, Hook, Step } from "../support/providers/emulator.ts";
import { CEILING_MS, until } from "../support/until.ts";

/** Number of simulated days. Set `INLET_TEST_DAYS=1000` for a long run, which takes five minutes on an idle machine. */
const DAYS = Number(process.env.INLET_TEST_DAYS ?? 150);
const WORKERS = 2;
/** Maximum number of days between two kills. More kills are random. */
const KILL_AT_LEAST_EVERY = 25;
const DAY_MS = 86_400_000;

const FAULTS: readonly Fault[] = [
  { lost: "request" },
  { lost: "response" },
  { delayMs: 40 },
  { status: 503 },
  { status: 500, body: "oops" },
  { status: 429, headers: { "retry-after": "600" } },
];
const STEPS: readonly Step[] = ["create", "list", "check", "renew", "update", "remove"];

/** A channel that is registered at a provider of its own. */
interface Registered {
  readonly sample: ProviderSample;
  readonly provider: Emulator;
  readonly foreign: Hook | undefined;
  /** Whether the provider can store only one webhook, so that there cannot be two. */
  readonly isSlot: boolean;
  readonly appId: string;
  readonly config: object;
  /** Address of the current channel. `undefined` while the channel is deleted. */
  address: string | undefined;
}

it(`keeps exactly one webhook for each channel for ${DAYS} days, while workers are killed and providers fail`, async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const world = await openWorld(seed);
  try {
    const kills = await runDays(world);
    console.log(
      `registrations: seed ${seed}, ${DAYS} days, ${world.channels.length} channels, ${kills} kills`,
    );
    expect(kills).toBeGreaterThanOrEqual(Math.floor(DAYS / KILL_AT_LEAST_EVERY));
    await settle(world);
    for (const channel of world.channels) await expectRegistered(world, channel);
    for (const channel of world.channels) await removeChannel(world, channel);
    await passQuietDays(world);
    expect(await listRows(world)).toEqual([]);
    for (const { provider, foreign, sample } of world.channels)
      if (sample.endsWithLease !== true)
        expect(provider.hooks()).toEqual(foreign && isLive(foreign) ? [foreign] : []);
  } catch (error) {
    throw new Error(`seed ${seed}: ${error}`, { cause: error });
  } finally {
    await world[Symbol.asyncDispose]();
  }
});

type World = Awaited<ReturnType<typeof openWorld>>;

async function openWorld(seed: number) {
  await using opening = new AsyncDisposableStack();
  const random = seeded(seed);
  const clock = moveWallClock();
  opening.defer(() => clock[Symbol.dispose]());
  const stores = opening.use(await createTestStores());
  const env = { ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8", INLET_ROLES: "hooks,api" };
  const gateway = opening.use(await startTestGateway(env));
  let aheadMs = 0;
  const workers: ChildProcess[] = [];
  opening.defer(async () => {
    await Promise.all(workers.map(killWorker));
  });
  async function startWorker(index: number): Promise<void> {
    const worker = fork(new URL("registrar-process.ts", import.meta.url), {
      env: { ...process.env, ...stores.env, INLET_HOOKS_URL: gateway.origin, AHEAD_MS: String(aheadMs) },
      execArgv: [],
    });
    workers[index] = worker;
    await once(worker, "message");
    worker.send(aheadMs);
  }
  for (let index = 0; index < WORKERS; index++) await startWorker(index);
  const channels: Registered[] = [];
  for (const sample of PROVIDER_SAMPLES) {
    const provider = opening.use(await sample.start({ clock: Date.now }));
    channels.push(await createChannel({ gateway, stores }, sample, provider));
  }
  const owned = opening.move();
  return {
    random,
    gateway,
    stores,
    channels,
    /** Kills a worker at once, and starts another one in its place. */
    async kill(): Promise<void> {
      const index = Math.floor(random() * WORKERS);
      workers[index]?.kill("SIGKILL");
      await startWorker(index);
    },
    async passDays(days: number): Promise<void> {
      clock.ahead(days * DAY_MS);
      aheadMs += days * DAY_MS;
      for (const worker of workers) worker.send(aheadMs);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Kills a worker, and waits for its end. */
async function killWorker(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  const ended = once(worker, "exit");
  worker.kill("SIGKILL");
  await ended;
}

async function runDays(world: World): Promise<number> {
  const { random, channels } = world;
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  let kills = 0;
  for (let day = 0; day < DAYS; day++) {
    if (random() < 0.5) pick(channels).provider.failNext(pick(STEPS), pick(FAULTS));
    if (random() < 0.1) {
      const { provider, foreign } = pick(channels);
      const [own] = provider.hooks().filter(({ id }) => id !== foreign?.id);
      if (own) provider.drop(own.id);
    }
    if (random() < 0.1) await changeChannel(world, pick(channels));
    const passed = world.passDays(1);
    if (random() < 0.03 || day % KILL_AT_LEAST_EVERY === 0) {
      kills++;
      await wait(random() * 30);
      await world.kill();
    }
    await passed;
    await untilQuiet(world);
    const rows = await listRows(world);
    for (const channel of channels) expectAtMostOne(channel, rows);
  }
  return kills;
}

async function createChannel(
  { gateway }: { readonly gateway: TestGateway; readonly stores: TestStores },
  sample: ProviderSample,
  provider: Emulator,
): Promise<Registered> {
  const { preset, target, params, basePath = "", prepare } = sample;
  const credentials = sample.connection?.(provider) ?? { kind: "bearer", config: { token: provider.token } };
  const connection = sample.isOpen
    ? undefined
    : await gateway.api<{ id: string }>("POST", "/connections", {
        name: `${preset} ${target}`,
        allowedOrigins: [provider.url],
        ...credentials,
      });
  const slots = sharedPresets()
    .get(preset)
    ?.registrations.find((one) => one.target === target)?.slots;
  const isSlot = slots === "one";
  const foreign = isSlot ? undefined : provider.addForeign("https://other.example/hooks");
  const { id: appId } = await installApp(gateway, []);
  const own = typeof sample.config === "function" ? sample.config(provider) : sample.config;
  const registration = {
    ...(connection && { connectionId: connection.id }),
    target,
    checkSeconds: 10 * 86_400,
    ...(typeof params === "function"
      ? { params: params(provider) }
      : { params, baseUrl: provider.url + basePath }),
  };
  const config = { preset, ...own };
  const channel: Registered = { sample, provider, foreign, isSlot, appId, config, address: undefined };
  await addChannel(gateway, channel);
  await prepare?.(provider, channel.address ?? "");
  await gateway.api("PUT", `/apps/${appId}/channels/hooks`, { config: { registration } });
  return { ...channel, config: { ...config, registration } };
}

async function addChannel(gateway: TestGateway, channel: Registered): Promise<void> {
  const { url } = await gateway.api<{ url: string }>("POST", `/apps/${channel.appId}/channels`, {
    uid: "hooks",
    kind: "webhook",
    config: channel.config,
    events: [{ type: "any", typePath: null }],
  });
  channel.address = url;
}

/** Rotates the address, or deletes the channel, or creates it again. */
async function changeChannel({ gateway, random }: World, channel: Registered): Promise<void> {
  const path = `/apps/${channel.appId}/channels/hooks`;
  // The address of a Pub/Sub subscription belongs to the person who created it.
  if (channel.sample.preset === "gmail") return;
  if (channel.address === undefined) return addChannel(gateway, channel);
  if (random() < 0.3) {
    await gateway.api("DELETE", path);
    channel.address = undefined;
    return;
  }
  const { url } = await gateway.api<{ url: string }>("POST", `${path}/rotate`, { graceSeconds: 3_600 });
  channel.address = url;
}

async function removeChannel({ gateway }: World, channel: Registered): Promise<void> {
  if (channel.address === undefined) return;
  await gateway.api("DELETE", `/apps/${channel.appId}/channels/hooks`);
  channel.address = undefined;
}

/** Waits until no registration is due. */
const untilQuiet = ({ stores }: World): Promise<void> =>
  until(async () => {
    const due = await stores.db
      .selectFrom("registrations")
      .select("id")
      .where("nextAt", "<=", new Date(Date.now()))
      .limit(1)
      .execute();
    return due.length === 0;
  });

/** Gives each channel an address again, and lets all faults and waits pass. */
async function settle(world: World): Promise<void> {
  for (const channel of world.channels)
    if (channel.address === undefined) await addChannel(world.gateway, channel);
  await passQuietDays(world);
}

/** Lets more days pass than the longest wait after failed attempts. */
async function passQuietDays(world: World): Promise<void> {
  for (let day = 0; day < 12; day++) {
    await world.passDays(1);
    await untilQuiet(world);
  }
}

const isLive = ({ expiresAtMs = Number.POSITIVE_INFINITY }: Hook): boolean => expiresAtMs > Date.now();

const listRows = ({ stores }: World) => stores.db.selectFrom("registrations").selectAll().execute();

const hooksAt = ({ provider, foreign }: Registered): readonly Hook[] =>
  provider.hooks().filter(({ id }) => id !== foreign?.id);

/** Each webhook belongs to a registration, unless a failure holds one up. */
function expectAtMostOne(channel: Registered, all: readonly RegistrationRow[]): void {
  const { provider, foreign, appId, sample, isSlot } = channel;
  if (foreign && isLive(foreign)) expect(provider.hooks()).toContainEqual(foreign);
  const rows = all.filter((row) => row.appId === appId);
  if (sample.endsWithLease || isSlot || rows.some(({ failures }) => failures > 0)) return;
  const known = rows.map(({ providerId }) => providerId);
  expect([sample.preset, hooksAt(channel).filter(({ id }) => !known.includes(id))]).toEqual([
    sample.preset,
    [],
  ]);
}

async function expectRegistered({ gateway }: World, channel: Registered): Promise<void> {
  const { provider, address, appId, sample } = channel;
  // A hub confirms a registration after its response.
  await vi.waitFor(async () => {
    const found = await gateway.api<object>("GET", `/apps/${appId}/channels/hooks/registration`);
    expect([sample.preset, found]).toMatchObject([sample.preset, { state: "active", lastError: null }]);
  }, CEILING_MS);
  if (sample.preset === "gmail") return;
  const own = provider.hooks().filter((hook) => hook.address === address);
  expect([sample.preset, own]).toMatchObject([sample.preset, [{ address }]]);
  await vi.waitFor(async () => {
    const sent = (await provider.deliver()).filter(({ hook }) => hook.address === address);
    expect([sample.preset, sent]).toMatchObject([sample.preset, [{ status: 200 }]]);
  }, CEILING_MS);
}
