import type { RegistrationContents, SealedContents } from "../data/registrations/registration-contents.ts";
import { isSameObject } from "../data/registrations/registrations.ts";
import { readId, readText, readTimeMs } from "../lib/json/read-path.ts";
import { err, ok, type Result } from "../lib/result.ts";
import type { PresetRegistration } from "../verify/preset-registration.ts";
import {
  type Attempt,
  fail,
  findOwn,
  getNextAt,
  HEALTHY,
  type StoredRegistration,
  sendStep,
} from "./attempt.ts";
import {
  endOfLifetime,
  needsSettling,
  type RegisteredChannel,
  toDesired,
  toTimes,
} from "./desired-contents.ts";
import { foreign, unconfirmed, unreadable } from "./failures.ts";
import { listAtProvider, type ProviderRegistration, readKept } from "./find-at-provider.ts";
import type { StepFailure } from "./provider.ts";

/**
 * Creates the registration, unless the provider already has it from an earlier attempt. A registration with the channel's address that
 * Inlet did not create is left alone.
 */
export async function register(deps: Attempt, channel: RegisteredChannel): Promise<void> {
  const { registration, row, contents } = deps;
  const { create, secret } = registration;
  const desired = toDesired(deps, channel);
  // Contents of the last request that may have created the registration. The channel may have changed since.
  const sent = row.attemptedAt === null ? undefined : (contents.pending ?? contents.confirmed);
  const former = row.attemptedAt === null ? findFormer(deps) : undefined;
  if (former !== undefined) {
    const visible = await isVisible(deps, former);
    if (!visible.ok) return fail(deps, visible.error);
    if (visible.value) return deps.takeOver(former);
  }
  if (sent === undefined && needsSettling(deps, desired)) return settle(deps, desired);
  if (sent !== undefined && create.confirmation !== undefined && row.confirmedAt !== null) {
    const { expiresAt } = row;
    const own = { id: row.id, address: sent.address, kept: {}, expiresAtMs: expiresAt?.getTime() };
    return activate(deps, { confirmed: sent }, own, { kind: "created", isCurrent: false });
  }
  const found = await findOwn(deps, sent ?? desired);
  if (!found.ok) return fail(deps, found.error);
  const [own] = found.value;
  if (own !== undefined && sent === undefined) return fail(deps, foreign(own));
  if (own !== undefined && sent !== undefined && typeof secret !== "object") return adopt(deps, sent, own);
  // The secret was lost with the response to `create`.
  if (own !== undefined) {
    const removed = await sendStep(deps, registration.remove, desired, own);
    if (!removed.ok && removed.code !== "gone") return fail(deps, removed);
  }
  if (sent !== undefined && !isFindable(registration)) {
    // A second request would create a second registration.
    if (row.providerId !== null && registration.check !== undefined) {
      const result = await sendStep(deps, registration.check, sent);
      if (!result.ok && result.code !== "gone") return fail(deps, result);
      const { id, kept } = { id: row.providerId, kept: row.kept };
      if (result.ok) return adopt(deps, sent, { id, kept, address: sent.address, expiresAtMs: undefined });
    } else if (row.providerId !== null || !isSame(sent, desired)) return deps.replace();
  }
  if (needsSettling(deps, desired)) return settle(deps, desired);
  return sendCreation(deps, desired);
}

type Former = StoredRegistration & { readonly confirmed: RegistrationContents };

/** Returns the registration of the same object that was made with another connection. */
function findFormer({ row, siblings }: Attempt): Former | undefined {
  for (const one of siblings) {
    const { confirmed } = one.contents;
    const isReplaced = one.row.replacedBy === row.id && one.row.connectionId !== row.connectionId;
    if (isReplaced && confirmed && one.row.providerId !== null && isSameObject(one.row, row))
      return { ...one, confirmed };
  }
  return undefined;
}

/** Returns whether the new connection sees the former registration, because both belong to the same account. */
async function isVisible(
  deps: Attempt,
  { row: { providerId, kept }, confirmed }: Former,
): Promise<Result<boolean, StepFailure>> {
  const { check, list, create } = deps.registration;
  const id = providerId ?? "";
  if (check !== undefined) {
    const result = await sendStep(deps, check, confirmed, { id, kept });
    if (!result.ok) return result.code === "gone" ? ok(false) : err(result);
    return ok(readText(result.body, check.addressPath) === confirmed.address);
  }
  if (list === undefined) return ok(create.repeatable);
  const listed = await listAtProvider(list, (step, url) =>
    sendStep(deps, step, confirmed, { id, kept }, url),
  );
  return listed.ok ? ok(listed.value.some((one) => one.id === id)) : listed;
}

/** Returns whether a repeated creation cannot lead to a second registration. */
const isFindable = ({ list, create }: PresetRegistration): boolean => list !== undefined || create.repeatable;

const isSame = (a: RegistrationContents, b: RegistrationContents): boolean =>
  a.address === b.address && a.secret === b.secret && JSON.stringify(a.events) === JSON.stringify(b.events);

/** Stores contents with a new secret, and waits until all gateways accept it. */
async function settle({ contents, write, clock, settleMs }: Attempt, desired: RegistrationContents) {
  await write({ contents: { ...contents, pending: desired }, nextAtMs: clock() + settleMs });
}

/** Takes over the registration of an earlier attempt. A changed channel then leads to an update. */
const adopt = (deps: Attempt, sent: RegistrationContents, own: ProviderRegistration): Promise<void> => {
  const { confirmed, pending } = deps.contents;
  // The provider may have either of the two.
  const contents = confirmed && pending ? { confirmed, pending } : { confirmed: sent };
  return activate(deps, contents, own, { kind: "adopted", isCurrent: false });
};

async function sendCreation(deps: Attempt, desired: RegistrationContents): Promise<void> {
  const { registration, row, contents, write, clock } = deps;
  const { create, secret: origin } = registration;
  const prepared = await prepare(deps, desired);
  if (!prepared.ok) return fail(deps, prepared.error);
  const attempted = { attemptedAtMs: clock(), confirmedAtMs: null, providerId: null };
  if (!(await write({ ...attempted, contents: { ...contents, pending: desired } }))) return;
  const result = await sendStep(deps, create, desired, { id: row.id, kept: prepared.value });
  if (!result.ok) return reactToRejection(deps, desired, result);
  if (create.confirmation !== undefined)
    return void (await write({ nextAtMs: clock() + CONFIRMATION_MS, lastError: unconfirmed(clock()) }));
  const id = create.idPath === undefined ? row.id : readId(result.body, create.idPath);
  if (id === undefined) return fail(deps, unreadable("id", create.idPath));
  const secret = typeof origin === "object" ? readText(result.body, origin.path) : desired.secret;
  if (typeof origin === "object" && secret === undefined)
    return fail(deps, unreadable("secret", origin.path));
  const expiresAtMs = readTimeMs(result.body, create.expiresPath) ?? endOfLifetime(deps);
  const own = { id, address: desired.address, expiresAtMs, kept: readKept(result.body, create.keep) };
  return activate(deps, { confirmed: { ...desired, secret } }, own, { kind: "created", isCurrent: true });
}

async function reactToRejection(
  deps: Attempt,
  desired: RegistrationContents,
  failure: StepFailure,
): Promise<void> {
  const { registration, row, siblings, write, notify, clock } = deps;
  // This request changed nothing, so the earlier knowledge is still true.
  const before = failure.isRejected
    ? { attemptedAtMs: row.attemptedAt?.getTime() ?? null, providerId: row.providerId }
    : {};
  if (failure.code !== "exists") return fail(deps, failure, before);
  // A registration whose name is its id was created by an earlier request. Its other values are unknown, so it stays until it expires.
  if (registration.create.idPath === undefined && row.attemptedAt !== null) {
    const expiresAtMs = endOfLifetime(deps, row.attemptedAt.getTime());
    const own = { id: row.id, address: desired.address, expiresAtMs, kept: {} };
    return activate(deps, { confirmed: desired }, own, { kind: "adopted", isCurrent: false });
  }
  const former = siblings.find(
    (one) =>
      one.row.replacedBy === row.id &&
      one.row.target === row.target &&
      one.contents.confirmed?.address === desired.address,
  );
  if (former?.contents.confirmed === undefined || former.row.providerId === null)
    return fail(deps, failure, before);
  // The provider accepts the address only once, so the former registration ends before this one begins.
  const nowMs = clock();
  if (!(await write({ ...before, lapsedAtMs: nowMs }))) return;
  const removed = await sendStep(
    { ...deps, row: former.row },
    registration.remove,
    former.contents.confirmed,
  );
  if (!removed.ok && removed.code !== "gone") return fail(deps, removed);
  notify({ kind: "lapsed" });
  await write({ nextAtMs: nowMs });
}

/** Reads the values that the creation needs. */
async function prepare(
  deps: Attempt,
  desired: RegistrationContents,
): Promise<Result<Readonly<Record<string, unknown>>, StepFailure>> {
  const { first } = deps.registration.create;
  if (first === undefined) return ok({});
  const result = await sendStep(deps, first, desired);
  return result.ok ? ok(readKept(result.body, first.keep)) : err(result);
}

/** Time in ms within which the provider must confirm a creation before Inlet repeats it. */
const CONFIRMATION_MS = 300_000;

/** @param isCurrent whether the provider certainly has the contents that the channel asks for */
async function activate(
  deps: Attempt,
  contents: SealedContents,
  { id, expiresAtMs, kept }: ProviderRegistration,
  { kind, isCurrent }: { readonly kind: "created" | "adopted"; readonly isCurrent: boolean },
): Promise<void> {
  const nowMs = deps.clock();
  const times = toTimes(deps, expiresAtMs);
  const nextAtMs = isCurrent ? getNextAt(deps, { checkedAtMs: nowMs, ...times }) : nowMs;
  const change = {
    ...HEALTHY,
    contents,
    providerId: id,
    kept,
    checkedAtMs: nowMs,
    lapsedAtMs: null,
  };
  const isStored = await deps.write({ ...change, ...times, nextAtMs });
  if (isStored) deps.notify({ kind });
}
