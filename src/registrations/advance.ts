import type { RegistrationContents } from "../data/registrations/registration-contents.ts";
import type { RegistrationRow } from "../data/registrations/registrations.ts";
import { readPath, readText, readTimeMs } from "../lib/json/read-path.ts";
import { type Attempt, checkSlot, fail, findOwn, getNextAt, HEALTHY, sendStep } from "./attempt.ts";
import {
  endOfLifetime,
  isConfirmed,
  needsSettling,
  type RegisteredChannel,
  toDesired,
  toTimes,
} from "./desired-contents.ts";
import { orphaned, slotTaken, unreadableCheck } from "./failures.ts";
import type { ProviderRegistration } from "./find-at-provider.ts";
import { register } from "./register.ts";

/**
 * Sends the next requests for a registration, and stores their results. Each request that may change something at the provider is recorded
 * before it is sent, so that the next worker can continue after a crash at any point.
 */
export async function advance(deps: Attempt): Promise<void> {
  const { row, contents, channel } = deps;
  if (row.state === "removing" || channel === undefined) return remove(deps);
  const { confirmed } = contents;
  const isRegistered = row.providerId !== null && row.state !== "creating" && row.state !== "lapsed";
  return isRegistered && confirmed !== undefined
    ? maintain(deps, channel, confirmed)
    : register(deps, channel);
}

async function maintain(
  deps: Attempt,
  channel: RegisteredChannel,
  confirmed: RegistrationContents,
): Promise<void> {
  const { registration, contents, row, clock } = deps;
  const nowMs = clock();
  const desired = toDesired(deps, channel);
  // The result of an update is unknown, so the provider may have its contents.
  const isUpdating = contents.pending !== undefined && registration.update !== undefined;
  if (isUpdating || !isConfirmed(registration, desired, confirmed)) return change(deps, desired);
  const { renewAt, expiresAt } = row;
  if (expiresAt !== null && expiresAt.getTime() <= nowMs) return lapse(deps);
  if (renewAt !== null && renewAt.getTime() <= nowMs) return renew(deps, confirmed);
  return check(deps, confirmed);
}

/** Time in ms after which a renewal is repeated that the provider has not confirmed. */
const UNCONFIRMED_MS = 3_600_000;

/** Gives the provider another address, secret or list of events. */
async function change(deps: Attempt, desired: RegistrationContents): Promise<void> {
  const { registration, contents, write, clock } = deps;
  const { update } = registration;
  if (update === undefined) return deps.replace();
  const isSettled = !needsSettling(deps, desired);
  const pending = { ...contents, pending: desired };
  const slot = await checkSlot(deps, desired);
  if (!slot.ok) return fail(deps, slot.error);
  if (!isSettled) return void (await write({ contents: pending, nextAtMs: clock() + deps.settleMs }));
  if (!(await write({ contents: pending }))) return;
  const result = await sendStep(deps, update, desired);
  if (!result.ok) return result.code === "gone" ? lapse(deps) : fail(deps, result);
  deps.notify({ kind: "updated" });
  await write({ ...HEALTHY, contents: { confirmed: desired }, nextAtMs: getNextAt(deps) });
}

async function renew(deps: Attempt, confirmed: RegistrationContents): Promise<void> {
  const { registration, write, clock } = deps;
  const { renew: step } = registration;
  if (step === undefined || step === "recreate") return deps.replace();
  if (!(await write({ state: "renewing" }))) return;
  const result = await sendStep(deps, step, confirmed);
  if (!result.ok) return result.code === "gone" ? lapse(deps) : fail(deps, result);
  deps.notify({ kind: "renewed" });
  // The provider's handshake states the new end.
  if (registration.create.confirmation !== undefined)
    return void (await write({ ...HEALTHY, nextAtMs: clock() + UNCONFIRMED_MS }));
  const expiresAtMs = readTimeMs(result.body, step.expiresPath) ?? endOfLifetime(deps);
  const times = toTimes(deps, expiresAtMs);
  await write({ ...HEALTHY, ...times, nextAtMs: getNextAt(deps, times) });
}

async function check(deps: Attempt, confirmed: RegistrationContents): Promise<void> {
  const { registration, row, write, clock } = deps;
  const { check: step, list } = registration;
  let expiresAtMs = row.expiresAt?.getTime();
  if (step !== undefined) {
    const result = await sendStep(deps, step, confirmed);
    if (!result.ok) return result.code === "gone" ? lapse(deps) : fail(deps, result);
    if (result.body === undefined) return fail(deps, unreadableCheck);
    const address = readText(result.body, step.addressPath);
    const isActive =
      step.active === undefined || readPath(result.body, step.active.path) === step.active.equals;
    // Another person gave the provider's registration another address, so it is no longer Inlet's.
    if (step.addressPath !== undefined && address !== confirmed.address) return lapse(deps);
    if (!isActive) return revive(deps, confirmed);
    expiresAtMs = readTimeMs(result.body, step.expiresPath) ?? expiresAtMs;
  } else if (list !== undefined) {
    const found = await findOwn(deps, confirmed);
    if (!found.ok) return fail(deps, found.error);
    const own = found.value.find(({ id }) => id === row.providerId);
    if (own === undefined) return lapse(deps);
    expiresAtMs = own.expiresAtMs ?? expiresAtMs;
  }
  const checkedAtMs = clock();
  const nextAtMs = getNextAt(deps, { checkedAtMs });
  await write({ ...HEALTHY, checkedAtMs, ...(expiresAtMs !== undefined && { expiresAtMs }), nextAtMs });
}

async function remove(deps: Attempt): Promise<void> {
  const { registration, row, contents, forget } = deps;
  const known = contents.confirmed ?? contents.pending;
  if (row.attemptedAt === null || known === undefined) return forget();
  const expiresAtMs = row.expiresAt?.getTime() ?? endOfLifetime(deps, row.attemptedAt.getTime());
  if (expiresAtMs !== undefined && expiresAtMs <= deps.clock()) return forget();
  const slot = await checkSlot(deps, known);
  if (!slot.ok && slot.error === slotTaken) return forget();
  if (!slot.ok) return fail(deps, slot.error, { state: "removing" });
  let own: Pick<ProviderRegistration, "id" | "kept"> | undefined =
    row.providerId === null ? undefined : { id: row.providerId, kept: row.kept };
  if (own === undefined && registration.list !== undefined) {
    const found = await findOwn(deps, known);
    if (!found.ok) return fail(deps, found.error, { state: "removing" });
    if (found.value.length === 0) return forget();
    [own] = found.value;
  }
  const placeholders = /\{\{\s*(?:id|kept\.\w+)\s*\}\}/.test(JSON.stringify(registration.remove));
  if (own === undefined && placeholders)
    return fail(deps, orphaned(registration, known), { state: "removing" });
  const result = await sendStep(deps, registration.remove, known, own);
  if (!result.ok && result.code !== "gone") return fail(deps, result, { state: "removing" });
  deps.notify({ kind: "removed" });
  return forget();
}

/** Lets a provider send again that has stopped, for example after too many failed deliveries. */
async function revive(deps: Attempt, confirmed: RegistrationContents): Promise<void> {
  const { update, remove: removal } = deps.registration;
  const result = await sendStep(deps, update ?? removal, confirmed);
  if (!result.ok && result.code !== "gone") return fail(deps, result);
  if (update === undefined || !result.ok) return lapse(deps);
  deps.notify({ kind: "lapsed" });
  const checkedAtMs = deps.clock();
  await deps.write({ ...HEALTHY, checkedAtMs, nextAtMs: getNextAt(deps, { checkedAtMs }) });
}

/** Stores that the provider no longer sends. The secret stays valid, because late deliveries may still arrive. */
async function lapse(deps: Attempt): Promise<void> {
  const { registration, row, contents, write, clock } = deps;
  const { idPath, repeatable } = registration.create;
  deps.notify({ kind: "lapsed" });
  // The provider accepts a name only once, and the name is the id of the row.
  if (idPath === undefined && !repeatable) return deps.replace(findGapStart(row));
  await write({
    state: "lapsed",
    contents: { pending: contents.confirmed ?? contents.pending },
    confirmedAtMs: null,
    lapsedAtMs: findGapStart(row),
    expiresAtMs: null,
    renewAtMs: null,
    nextAtMs: clock(),
  });
}

/** Returns the time of the last successful check, from which on events may be missing. */
const findGapStart = ({ lapsedAt, checkedAt, createdAt }: RegistrationRow): number =>
  (lapsedAt ?? checkedAt ?? createdAt).getTime();
