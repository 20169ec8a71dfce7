import type { RegistrationContents, SealedContents } from "../data/registrations/registration-contents.ts";
import type { RegistrationChange } from "../data/registrations/registration-work.ts";
import type { RegistrationRow } from "../data/registrations/registrations.ts";
import { backoffMs } from "../lib/backoff.ts";
import { formatTimestamp } from "../lib/clock.ts";
import { readText } from "../lib/json/read-path.ts";
import type { Result } from "../lib/result.ts";
import type { PresetRegistration, RegistrationStep } from "../verify/preset-registration.ts";
import type { RegisteredChannel } from "./desired-contents.ts";
import { slotTaken, unreadableCheck } from "./failures.ts";
import { listAtProvider, type ProviderRegistration } from "./find-at-provider.ts";
import type { SendStep, StepFailure, StepResult } from "./provider.ts";
import { renderStep } from "./render-step.ts";

/** A stored registration with its opened contents. */
export interface StoredRegistration {
  readonly row: RegistrationRow;
  readonly contents: SealedContents;
}

/** One attempt to bring a registration into the state that its channel asks for. */
export interface Attempt extends StoredRegistration {
  readonly registration: PresetRegistration;
  /** Other registrations of the same channel, which are being removed or wait for this one. */
  readonly siblings: readonly StoredRegistration[];
  /** `undefined` if the channel was deleted, or asks for another registration. */
  readonly channel: RegisteredChannel | undefined;
  readonly send: SendStep;
  /** Stores a change. Returns false if another worker has taken over, or the registration was deleted. */
  readonly write: (change: RegistrationChange) => Promise<boolean>;
  /**
   * Creates a registration that takes the place of this one.
   *
   * @param lapsedAtMs start of the gap of events, if the provider no longer sends
   */
  readonly replace: (lapsedAtMs?: number) => Promise<void>;
  /** Takes over the provider's registration from a sibling that waits for this one. */
  readonly takeOver: (former: StoredRegistration) => Promise<void>;
  readonly forget: () => Promise<void>;
  /** Keeps former addresses of the channel valid until the time. Addresses that a person has ended stay invalid. */
  readonly keepAddresses: (addresses: readonly string[], untilMs: number) => Promise<void>;
  readonly notify: (event: RegistrationEvent) => void;
  readonly createSecret: () => string;
  readonly clock: () => number;
  readonly random: () => number;
  /** Time in ms until all gateways accept a new secret. */
  readonly settleMs: number;
  readonly signal: AbortSignal;
}

export type RegistrationEvent =
  | { readonly kind: "created" | "adopted" | "renewed" | "updated" | "removed" | "lapsed" }
  | { readonly kind: "failed"; readonly failure: StepFailure };

/** Fields of a registration after a successful request. */
export const HEALTHY = { state: "active", failures: 0, lastError: null } as const;

const RETRY = { initialMs: 5_000, maxMs: 3_600_000, factor: 2, jitter: 0.3 };
/** Minimum wait before a request is retried that fails until a person acts. */
const PERSON_MS = 15 * 60_000;
const PERSON_CODES: readonly string[] = ["needsReauth", "quota", "foreign", "slot_taken", "orphaned"];

/** Time in ms after the next attempt for which the address that the provider has stays valid. */
const ADDRESS_MARGIN_MS = 600_000;

/** Stores a failure and the time of the next attempt. */
export async function fail(
  deps: Attempt,
  failure: StepFailure,
  change: RegistrationChange = {},
): Promise<void> {
  const { row, clock, random, write } = deps;
  const { code, message, notBeforeMs } = failure;
  const nowMs = clock();
  const failures = row.failures + 1;
  const waitMs = Math.max(backoffMs(RETRY, failures, random), PERSON_CODES.includes(code) ? PERSON_MS : 0);
  deps.notify({ kind: "failed", failure });
  const nextAtMs = Math.max(nowMs + waitMs, notBeforeMs ?? 0);
  const addresses = [deps, ...deps.siblings].flatMap(({ contents }) => contents.confirmed?.address ?? []);
  await deps.keepAddresses(addresses, nextAtMs + ADDRESS_MARGIN_MS);
  await write({
    state: "failed",
    ...change,
    failures,
    lastError: { code, message, at: formatTimestamp(nowMs) },
    nextAtMs,
  });
}

/** Returns whether both belong to the same installation of a provider, so that their ids can be compared. */
const isSameProvider = (a: RegistrationRow, b: RegistrationRow): boolean =>
  a.preset === b.preset && a.baseUrl === b.baseUrl;

/** Returns the time of the next check or renewal. Times that are left out are those of the row. */
export function getNextAt(
  { row, channel }: Attempt,
  times: { readonly checkedAtMs?: number; readonly renewAtMs?: number | null } = {},
): number {
  const { checkedAtMs = row.checkedAt?.getTime() ?? 0, renewAtMs = row.renewAt?.getTime() } = times;
  const nextCheckMs = checkedAtMs + (channel?.checkSeconds ?? 0) * 1_000;
  return Math.min(nextCheckMs, renewAtMs ?? nextCheckMs);
}

/**
 * Finds the registrations with the channel's address at the provider, apart from those that belong to siblings. Empty if the provider has
 * no list.
 */
export async function findOwn(
  deps: Attempt,
  contents: RegistrationContents,
): Promise<Result<readonly ProviderRegistration[], StepFailure>> {
  const { registration, row } = deps;
  const { list } = registration;
  const addresses = getAddresses(deps, contents);
  const siblings = deps.siblings.filter((one) => isSameProvider(one.row, row)).map((one) => one.row);
  const taken = siblings.map(({ providerId }) => providerId);
  if (list !== undefined) {
    const listed = await listAtProvider(list, (request, url) =>
      sendStep(deps, request, contents, undefined, url),
    );
    if (!listed.ok) return listed;
    const own = listed.value.filter(({ id, address }) => addresses.includes(address) && !taken.includes(id));
    // The provider may have stored these for siblings whose response was lost.
    const unknown = siblings.filter(
      ({ attemptedAt, providerId }) => attemptedAt !== null && providerId === null,
    );
    return { ok: true, value: row.attemptedAt === null ? own.slice(unknown.length) : own };
  }
  const slot = await checkSlot(deps, contents);
  return slot.ok ? { ok: true, value: [] } : slot;
}

/** Fails with `slotTaken` if the provider stores only one webhook, and it is another program's. */
export async function checkSlot(
  deps: Attempt,
  contents: RegistrationContents,
): Promise<Result<undefined, StepFailure>> {
  const { check: step, slots } = deps.registration;
  if (slots === "many" || step === undefined) return { ok: true, value: undefined };
  const result = await sendStep(deps, step, contents);
  if (!result.ok)
    return result.code === "gone" ? { ok: true, value: undefined } : { ok: false, error: result };
  if (result.body === undefined) return { ok: false, error: unreadableCheck };
  const address = readText(result.body, step.addressPath);
  const isFree = address === undefined || getAddresses(deps, contents).includes(address);
  return isFree ? { ok: true, value: undefined } : { ok: false, error: slotTaken };
}

/** Returns the addresses of the channel that the provider may have. */
const getAddresses = (
  { contents: { confirmed, pending } }: Pick<Attempt, "contents">,
  { address }: RegistrationContents,
): readonly (string | undefined)[] => [address, confirmed?.address, pending?.address];

/** Sends a step. @param own the registration at the provider, which is the stored one by default */
export function sendStep(
  deps: Attempt,
  step: RegistrationStep,
  contents: RegistrationContents,
  own: { readonly id: string; readonly kept: Readonly<Record<string, unknown>> } | undefined = deps.row
    .providerId === null
    ? undefined
    : { id: deps.row.providerId, kept: deps.row.kept },
  url?: string,
): Promise<StepResult> {
  const { registration, row, send, clock, signal } = deps;
  const secrets = getSecrets([contents, deps.contents.confirmed, deps.contents.pending]);
  const values = { ...contents, params: row.params, name: row.id, id: own?.id, kept: own?.kept ?? {} };
  const request = renderStep(registration, step, { ...values, nowMs: clock() }, row.baseUrl);
  return send(registration, row.connectionId, url === undefined ? request : { ...request, url }, {
    signal,
    secrets,
  });
}

/** Returns the secrets and the secret parts of the addresses. */
const getSecrets = (all: readonly (RegistrationContents | undefined)[]): readonly string[] =>
  all.flatMap((one) => (one === undefined ? [] : [one.secret ?? "", one.address.split("/").at(-1) ?? ""]));
