import type { RegistrationContents } from "../data/registrations/registration-contents.ts";
import { readId, readText, readTimeMs } from "../lib/json/read-path.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { type Attempt, fail, findOwn, HEALTHY, sendStep } from "./attempt.ts";
import {
  endOfLifetime,
  needsSettling,
  type RegisteredChannel,
  toDesired,
  toTimes,
} from "./desired-contents.ts";
import { foreign, unconfirmed, unreadable } from "./failures.ts";
import { type ProviderRegistration, readKept } from "./find-at-provider.ts";
import type { StepFailure } from "./provider.ts";

/**
 * Creates the registration, unless the provider already has it from an earlier attempt. A registration with the channel's address that
 * Inlet did not create is left alone.
 */
export async function register(deps: Attempt, channel: RegisteredChannel): Promise<void> {
  const { registration, row, contents, write, clock } = deps;
  const desired = toDesired(deps, channel);
  if (needsSettling(deps, desired)) {
    await write({ contents: { ...contents, pending: desired }, nextAtMs: clock() + deps.settleMs });
    return;
  }
  const { confirmation } = registration.create;
  if (confirmation !== undefined && isConfirmedByProvider(row)) {
    const { expiresAt } = row;
    const own = { id: row.id, address: desired.address, kept: {}, expiresAtMs: expiresAt?.getTime() };
    return activate(deps, desired, own, "created");
  }
  const found = await findOwn(deps, desired);
  if (!found.ok) return fail(deps, found.error);
  const [own] = found.value;
  if (own !== undefined && row.attemptedAt === null) return fail(deps, foreign(own));
  if (own !== undefined && typeof registration.secret !== "object")
    return activate(deps, desired, own, "adopted");
  // The secret was lost with the response to `create`.
  if (own !== undefined) {
    const removed = await sendStep(deps, registration.remove, desired, own);
    if (!removed.ok && removed.code !== "gone") return fail(deps, removed);
  }
  const prepared = await prepare(deps, desired);
  if (!prepared.ok) return fail(deps, prepared.error);
  if (!(await write({ attemptedAtMs: clock(), contents: { ...contents, pending: desired } }))) return;
  const { create } = registration;
  const result = await sendStep(deps, create, desired, { id: row.id, kept: prepared.value });
  if (result.ok && confirmation !== undefined)
    return void (await write({ nextAtMs: clock() + CONFIRMATION_MS, lastError: unconfirmed(clock()) }));
  if (result.ok) {
    const id = create.idPath === undefined ? row.id : readId(result.body, create.idPath);
    if (id === undefined) return fail(deps, unreadable("id", create.idPath));
    const secret =
      typeof registration.secret === "object"
        ? readText(result.body, registration.secret.path)
        : desired.secret;
    if (typeof registration.secret === "object" && secret === undefined)
      return fail(deps, unreadable("secret", registration.secret.path));
    const expiresAtMs = readTimeMs(result.body, create.expiresPath) ?? endOfLifetime(deps);
    const kept = readKept(result.body, create.keep);
    return activate(
      deps,
      { ...desired, secret },
      { id, address: desired.address, expiresAtMs, kept },
      "created",
    );
  }
  // A registration whose name is its id was created by an earlier request. Its other values are unknown, so it stays until it expires.
  if (result.code === "exists" && create.idPath === undefined && row.attemptedAt !== null) {
    const expiresAtMs = endOfLifetime(deps, row.attemptedAt.getTime());
    return activate(
      deps,
      desired,
      { id: row.id, address: desired.address, expiresAtMs, kept: {} },
      "adopted",
    );
  }
  return fail(deps, result, result.isRejected && row.attemptedAt === null ? { attemptedAtMs: null } : {});
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

const isConfirmedByProvider = ({ attemptedAt, confirmedAt }: Attempt["row"]): boolean =>
  attemptedAt !== null && confirmedAt !== null && confirmedAt >= attemptedAt;

async function activate(
  deps: Attempt,
  confirmed: RegistrationContents,
  { id, expiresAtMs, kept }: ProviderRegistration,
  kind: "created" | "adopted",
): Promise<void> {
  const nowMs = deps.clock();
  const change = {
    ...HEALTHY,
    contents: { confirmed },
    providerId: id,
    kept,
    checkedAtMs: nowMs,
    lapsedAtMs: null,
  };
  const isStored = await deps.write({ ...change, ...toTimes(deps, expiresAtMs), nextAtMs: nowMs });
  if (isStored) deps.notify({ kind });
}
