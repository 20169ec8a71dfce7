import { randomBytes, randomUUID } from "node:crypto";
import type { Wakes } from "../bus/sources/wakes.ts";
import { openAddress } from "../data/channels/address-columns.ts";
import { extendFormerAddresses } from "../data/channels/channel-addresses.ts";
import { openSecrets } from "../data/channels/channel-secrets.ts";
import type { Queryable } from "../data/database.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import { openContents } from "../data/registrations/registration-contents.ts";
import {
  claimDueRegistrations,
  forgetRegistration,
  type RegistrationChange,
  takeOverRegistration,
  writeRegistration,
} from "../data/registrations/registration-work.ts";
import {
  claimHooksUrl,
  listSiblings,
  type RegistrationRow,
  replaceRegistration,
} from "../data/registrations/registrations.ts";
import type { ChannelRow } from "../data/tables.ts";
import { type Clock, formatTimestamp } from "../lib/clock.ts";
import { startLoop } from "../lib/loop.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { PresetRegistration } from "../verify/preset-registration.ts";
import type { Presets } from "../verify/presets.ts";
import { registrationConfigSchema } from "../verify/registration-config.ts";
import { type Secret, senderConfigSchema } from "../verify/sender-config.ts";
import { advance } from "./advance.ts";
import type { RegistrationEvent, StoredRegistration } from "./attempt.ts";
import { type RegisteredChannel, toEventTypes } from "./desired-contents.ts";
import { tookTooLong, unexpected, unsupported } from "./failures.ts";
import { findRegistration } from "./find-registration.ts";
import { createSendStep, type ProviderDeps, type StepFailure } from "./provider.ts";
import { wakeReconciling } from "./provider-messages.ts";

export interface RegistrarTiming {
  /** Interval in ms at which due registrations are searched for. */
  readonly tickMs: number;
  /** Lease of a worker in ms. If the worker dies, another one continues after this time. */
  readonly leaseMs: number;
  /** Time in ms until all gateways accept a new secret. Must exceed the time in which configuration changes take effect. */
  readonly settleMs: number;
}

export interface RegistrarDeps extends Omit<ProviderDeps, "clock"> {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly presets: Presets;
  readonly hooksUrl: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "registrations">;
  readonly wakes: Pick<Wakes, "store">;
  readonly timing?: Partial<RegistrarTiming> | undefined;
}

const TIMING: RegistrarTiming = { tickMs: 1_000, leaseMs: 120_000, settleMs: 3_000 };
/** Registrations that one worker handles at the same time. */
const CONCURRENCY = 16;
/** Fraction of the lease after which requests are aborted, so that two workers never send at the same time. */
const REQUESTS_FRACTION = 0.8;
/** Wait in ms before a registration is tried again whose preset is missing or whose attempt ended with an unexpected error. */
const BROKEN_RETRY_MS = 60_000;
const SECRET_BYTES = 32;

/**
 * Starts the worker that keeps registrations at providers in the state that their channels ask for. Several workers share the work: each
 * registration is claimed by one at a time. Disposal aborts requests in flight, whose results the next worker finds out.
 */
export function startRegistrar(deps: RegistrarDeps): AsyncDisposable {
  const { db, log, hooksUrl, clock } = deps;
  const timing = { ...TIMING, ...deps.timing };
  const holder = randomUUID();
  const send = createSendStep(deps);
  const running = new Map<string, Promise<void>>();
  let isSuspended = false;

  async function tick(signal: AbortSignal): Promise<void> {
    const free = CONCURRENCY - running.size;
    if (free === 0) return;
    if (!(await claimHooksUrl(db, hooksUrl))) return suspend();
    isSuspended = false;
    const claim = { holder, leaseMs: timing.leaseMs, nowMs: clock(), limit: free };
    for (const row of await claimDueRegistrations(db, claim)) {
      const attempt = attemptOne(row, signal).finally(() => running.delete(row.id));
      running.set(row.id, attempt);
    }
  }

  function suspend(): void {
    if (isSuspended) return;
    isSuspended = true;
    log.warn(
      { event: "registrations.suspended", hooksUrl },
      "registrations belong to another hooks URL; run `inlet registrations adopt` if this gateway should take them over",
    );
  }

  async function attemptOne(row: RegistrationRow, stopping: AbortSignal): Promise<void> {
    const facts = { registration: row.id, app: row.appId, channel: row.channelUid, preset: row.preset };
    const write = (change: RegistrationChange) => writeRegistration(db, deps.keyring, row, holder, change);
    let hasGap = false;
    let deadline: AbortSignal | undefined;
    try {
      const registration = findRegistration(deps.presets, row);
      if (registration === undefined) return void (await write(toBroken(row, unsupported(row))));
      deadline = AbortSignal.timeout(timing.leaseMs * REQUESTS_FRACTION);
      const signal = AbortSignal.any([stopping, deadline]);
      await advance({
        registration,
        row,
        contents: openContents(deps.keyring, row),
        siblings: await readSiblings(deps, row),
        channel: await readChannel(deps, row, registration),
        send,
        write,
        replace: (lapsedAtMs) => replaceRegistration(db, row, holder, { nowMs: clock(), lapsedAtMs }),
        takeOver: (former) => takeOverRegistration(db, deps.keyring, row, former, clock()),
        keepAddresses: (addresses, untilMs) => keepFormer(row, addresses, untilMs - clock()),
        forget: () => forgetRegistration(db, row, holder),
        notify(event) {
          deps.metrics.registrations.inc({ preset: row.preset, result: event.kind });
          logEvent(log, event, facts);
          const isBack = event.kind === "created" || event.kind === "adopted";
          hasGap ||= event.kind === "lapsed" || (isBack && row.lapsedAt !== null);
        },
        createSecret: () => randomBytes(SECRET_BYTES).toString("base64url"),
        clock,
        random: Math.random,
        settleMs: timing.settleMs,
        signal,
      });
      // If the wake cannot be stored, the schedule of the channel covers the gap.
      if (hasGap) await wakeReconciling(deps, { appId: row.appId, uid: row.channelUid });
    } catch (err) {
      if (stopping.aborted) return;
      log.error({ event: "registration.error", err, ...facts }, "an attempt ended with an unexpected error");
      // If PostgreSQL is unavailable, the next attempt begins once the lease has expired.
      await write(toBroken(row, deadline?.aborted === true ? tookTooLong : unexpected)).catch(() => {});
    }
  }

  async function keepFormer({ channelNumber }: RegistrationRow, urls: readonly string[], leftMs: number) {
    const addresses = urls.map((url) => url.split("/").at(-1) ?? "");
    if (channelNumber !== null && addresses.length > 0)
      await extendFormerAddresses(db, deps.keyring, { channelNumber, addresses, leftMs });
  }

  /** Returns the change after an attempt that Inlet could not finish, so that a problem opens. */
  function toBroken({ state, failures }: RegistrationRow, failure: StepFailure): RegistrationChange {
    const nowMs = clock();
    return {
      state: state === "removing" ? state : "failed",
      failures: failures + 1,
      lastError: { code: failure.code, message: failure.message, at: formatTimestamp(nowMs) },
      nextAtMs: nowMs + BROKEN_RETRY_MS,
    };
  }

  const loop = startLoop({
    step: tick,
    everyMs: timing.tickMs,
    onFailing: (err) => log.warn({ event: "registrations.failing", err }, "due registrations cannot be read"),
    onRecovered: () => log.info({ event: "registrations.recovered" }, "due registrations can be read again"),
  });
  return {
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await Promise.all(running.values());
    },
  };
}

async function readSiblings(
  { db, keyring }: Pick<RegistrarDeps, "db" | "keyring">,
  registration: RegistrationRow,
): Promise<readonly StoredRegistration[]> {
  const rows = await listSiblings(db, registration);
  return rows.map((row) => ({ row, contents: openContents(keyring, row) }));
}

async function readChannel(
  deps: Pick<RegistrarDeps, "db" | "keyring" | "hooksUrl" | "presets">,
  { channelNumber }: RegistrationRow,
  registration: PresetRegistration,
): Promise<RegisteredChannel | undefined> {
  if (channelNumber === null) return undefined;
  const row = await deps.db
    .selectFrom("channels")
    .selectAll()
    .where("number", "=", channelNumber)
    .executeTakeFirst();
  return row && toRegisteredChannel(deps, row, registration);
}

/** Returns the settings of a channel that its registration contains. */
export function toRegisteredChannel(
  { keyring, hooksUrl, presets }: Pick<RegistrarDeps, "keyring" | "hooksUrl" | "presets">,
  row: ChannelRow,
  registration: PresetRegistration,
): RegisteredChannel {
  const { secrets } = senderConfigSchema.pick({ secrets: true }).parse(openSecrets(keyring, row));
  const { checkSeconds } = registrationConfigSchema.parse(row.config.registration);
  return {
    address: `${hooksUrl}/hooks/${openAddress(keyring, row)}`,
    secret: secrets.find(({ name }: Secret) => name === undefined)?.value,
    events: toEventTypes(registration, row.events, presets.get(String(row.config.preset))?.typePath),
    checkSeconds,
  };
}

function logEvent(log: Log, event: RegistrationEvent, facts: Readonly<Record<string, unknown>>) {
  switch (event.kind) {
    case "created":
      return log.info({ event: "registration.created", ...facts }, "the provider sends to a channel");
    case "adopted":
      return log.info(
        { event: "registration.adopted", ...facts },
        "the provider still had the registration of an unfinished attempt",
      );
    case "updated":
      return log.info(
        { event: "registration.updated", ...facts },
        "the provider has the channel's new settings",
      );
    case "renewed":
      return log.info(
        { event: "registration.renewed", ...facts },
        "the provider has extended a registration",
      );
    case "removed":
      return log.info({ event: "registration.removed", ...facts }, "the provider has removed a registration");
    case "lapsed":
      return log.warn(
        { event: "registration.lapsed", ...facts },
        "the provider no longer sends to a channel",
      );
    case "failed": {
      const { code, message: reason } = event.failure;
      return log.warn({ event: "registration.failed", code, reason, ...facts }, "a registration failed");
    }
    default:
      return event satisfies never;
  }
}
