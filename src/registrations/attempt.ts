import type { RegistrationContents, SealedContents } from "../data/registrations/registration-contents.ts";
import type { RegistrationChange } from "../data/registrations/registration-work.ts";
import type { RegistrationRow } from "../data/registrations/registrations.ts";
import { backoffMs } from "../lib/backoff.ts";
import { formatTimestamp } from "../lib/clock.ts";
import { readText } from "../lib/json/read-path.ts";
import type { Result } from "../lib/result.ts";
import type { PresetRegistration, RegistrationStep } from "../verify/preset-registration.ts";
import type { RegisteredChannel } from "./desired-contents.ts";
import { slotTaken } from "./failures.ts";
import { listAtProvider, type ProviderRegistration } from "./find-at-provider.ts";
import type { SendStep, StepFailure, StepResult } from "./provider.ts";
import { renderStep } from "./render-step.ts";

/** One attempt to bring a registration into the state that its channel asks for. */
export interface Attempt {
  readonly registration: PresetRegistration;
  readonly row: RegistrationRow;
  readonly contents: SealedContents;
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
  readonly forget: () => Promise<void>;
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
  await write({
    state: "failed",
    ...change,
    failures,
    lastError: { code, message, at: formatTimestamp(nowMs) },
    nextAtMs: Math.max(nowMs + waitMs, notBeforeMs ?? 0),
  });
}

/** Finds the registrations with the address at the provider. Empty if the provider has no list. */
export async function findOwn(
  deps: Attempt,
  contents: RegistrationContents,
): Promise<Result<readonly ProviderRegistration[], StepFailure>> {
  const { registration } = deps;
  const { list, check: step, slots } = registration;
  const addresses = [contents.address, deps.contents.confirmed?.address, deps.contents.pending?.address];
  if (list !== undefined) {
    const listed = await listAtProvider(list, (request, url) =>
      sendStep(deps, request, contents, undefined, url),
    );
    return listed.ok
      ? { ok: true, value: listed.value.filter(({ address }) => addresses.includes(address)) }
      : listed;
  }
  if (slots === "many" || step === undefined) return { ok: true, value: [] };
  const result = await sendStep(deps, step, contents);
  if (!result.ok) return result.code === "gone" ? { ok: true, value: [] } : { ok: false, error: result };
  const address = readText(result.body, step.addressPath);
  return address === undefined || addresses.includes(address)
    ? { ok: true, value: [] }
    : { ok: false, error: slotTaken };
}

/** Sends a step. @param own the registration at the provider, which is the stored one by default */
export function sendStep(
  { registration, row, send, clock, signal }: Attempt,
  step: RegistrationStep,
  contents: RegistrationContents,
  own:
    | { readonly id: string; readonly kept: Readonly<Record<string, unknown>> }
    | undefined = row.providerId === null ? undefined : { id: row.providerId, kept: row.kept },
  url?: string,
): Promise<StepResult> {
  const values = { ...contents, params: row.params, name: row.id, id: own?.id, kept: own?.kept ?? {} };
  const request = renderStep(registration, step, { ...values, nowMs: clock() }, row.baseUrl);
  return send(registration, row.connectionId, url === undefined ? request : { ...request, url }, { signal });
}
