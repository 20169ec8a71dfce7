import { sql } from "kysely";
import { recordChange } from "../changes.ts";
import type { Queryable } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { type SealedContents, sealContents } from "./registration-contents.ts";
import type { RegistrationFailure, RegistrationState } from "./registration-table.ts";
import type { RegistrationRow } from "./registrations.ts";

/** The exclusive right of one worker to send requests for a registration, until its lease expires. */
export interface RegistrationClaim {
  readonly holder: string;
  readonly leaseMs: number;
  readonly nowMs: number;
  readonly limit: number;
}

/** Claims registrations that are due, most overdue first. Other workers skip them until the lease expires, by PostgreSQL's clock. */
export const claimDueRegistrations = (
  db: Queryable,
  { holder, leaseMs, nowMs, limit }: RegistrationClaim,
): Promise<readonly RegistrationRow[]> =>
  db
    .updateTable("registrations")
    .set({
      leaseHolder: holder,
      leaseExpiresAt: sql<Date>`clock_timestamp() + make_interval(secs => ${leaseMs / 1000})`,
    })
    .where("id", "in", (eb) =>
      eb
        .selectFrom("registrations")
        .select("id")
        .where("nextAt", "<=", new Date(nowMs))
        .where(sql<boolean>`(lease_expires_at IS NULL OR lease_expires_at < clock_timestamp())`)
        .orderBy("nextAt")
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute();

/** A change of a registration after a request. `undefined` leaves a field as it is. */
export interface RegistrationChange {
  readonly state?: RegistrationState;
  readonly contents?: SealedContents;
  readonly providerId?: string | null;
  readonly kept?: Readonly<Record<string, unknown>>;
  readonly attemptedAtMs?: number | null;
  readonly confirmedAtMs?: number | null;
  readonly expiresAtMs?: number | null;
  readonly renewAtMs?: number | null;
  readonly checkedAtMs?: number;
  readonly lapsedAtMs?: number | null;
  /** Time of the next request. Without it, the worker keeps its lease. */
  readonly nextAtMs?: number;
  readonly failures?: number;
  readonly lastError?: RegistrationFailure | null;
}

/**
 * Stores a change if the worker still has its lease. A channel that was changed or deleted meanwhile keeps its state and its error, and stays due.
 * Returns false if the lease is lost or the registration was deleted.
 */
export async function writeRegistration(
  db: Queryable,
  keyring: Keyring,
  row: RegistrationRow,
  holder: string,
  change: RegistrationChange,
): Promise<boolean> {
  const { state, contents, kept, nextAtMs, lastError } = change;
  const isUnchanged = sql<boolean>`wanted = ${row.wanted}`;
  const time = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));
  return db.transaction().execute(async (trx) => {
    const written = await trx
      .updateTable("registrations")
      .set({
        updatedAt: sql<Date>`clock_timestamp()`,
        ...(state !== undefined && {
          state: sql<RegistrationState>`CASE WHEN ${isUnchanged} THEN ${state} ELSE state END`,
        }),
        ...(contents !== undefined && { sealedContents: sealContents(keyring, row.id, contents) }),
        ...(change.providerId !== undefined && { providerId: change.providerId }),
        ...(kept !== undefined && { kept: JSON.stringify(kept) }),
        ...(change.attemptedAtMs !== undefined && { attemptedAt: time(change.attemptedAtMs) }),
        ...(change.confirmedAtMs !== undefined && { confirmedAt: time(change.confirmedAtMs) }),
        ...(change.expiresAtMs !== undefined && { expiresAt: time(change.expiresAtMs) }),
        ...(change.renewAtMs !== undefined && { renewAt: time(change.renewAtMs) }),
        ...(change.checkedAtMs !== undefined && { checkedAt: time(change.checkedAtMs) }),
        ...(change.lapsedAtMs !== undefined && { lapsedAt: time(change.lapsedAtMs) }),
        ...(change.failures !== undefined && { failures: change.failures }),
        ...(lastError !== undefined && {
          lastError: sql<
            string | null
          >`CASE WHEN ${isUnchanged} THEN ${lastError === null ? null : JSON.stringify(lastError)}::json ELSE last_error END`,
        }),
        ...(nextAtMs !== undefined && {
          nextAt: sql<Date>`CASE WHEN ${isUnchanged} THEN ${new Date(nextAtMs)} ELSE next_at END`,
          leaseHolder: null,
          leaseExpiresAt: null,
        }),
      })
      .where("id", "=", row.id)
      .where("leaseHolder", "=", holder)
      .returning(["channelNumber", "state"])
      .executeTakeFirst();
    if (!written) return false;
    const { channelNumber } = written;
    // Gateways cache the secrets of the channel.
    if (contents !== undefined && channelNumber !== null)
      await recordChange(trx, { kind: "channel", key: String(channelNumber) });
    if (written.state === "active") await removeReplaced(trx, row);
    return true;
  });
}

/** Makes the registrations due whose successor is active. Their secrets stay valid, because the provider may still send with them. */
async function removeReplaced(trx: Queryable, { id }: Pick<RegistrationRow, "id">): Promise<void> {
  await trx
    .updateTable("registrations")
    .set({ nextAt: new Date(0), replacedBy: null })
    .where("replacedBy", "=", id)
    .execute();
}

/**
 * Moves the id and contents of a replaced registration to its successor, which uses another connection. The replaced registration is
 * deleted, so that no worker removes it at the provider. Does nothing if the channel was changed or deleted meanwhile.
 */
export async function takeOverRegistration(
  db: Queryable,
  keyring: Keyring,
  { id, channelNumber }: RegistrationRow,
  { row: former, contents }: { readonly row: RegistrationRow; readonly contents: SealedContents },
  nowMs: number,
): Promise<void> {
  const { providerId, attemptedAt, confirmedAt, expiresAt, renewAt, checkedAt, lapsedAt } = former;
  await db.transaction().execute(async (trx) => {
    const deleted = await trx
      .deleteFrom("registrations")
      .where("id", "=", former.id)
      .where("replacedBy", "=", id)
      .returning("id")
      .executeTakeFirst();
    if (!deleted) return;
    await trx
      .updateTable("registrations")
      .set({
        ...{ providerId, attemptedAt, confirmedAt, expiresAt, renewAt, checkedAt, lapsedAt },
        state: "active",
        kept: JSON.stringify(former.kept),
        sealedContents: sealContents(keyring, id, contents),
        failures: 0,
        lastError: null,
        nextAt: new Date(nowMs),
        leaseHolder: null,
        leaseExpiresAt: null,
      })
      .where("id", "=", id)
      .execute();
    await removeReplaced(trx, { id });
    if (channelNumber !== null) await recordChange(trx, { kind: "channel", key: String(channelNumber) });
  });
}

/** Deletes a registration that the provider no longer has. */
export async function forgetRegistration(
  db: Queryable,
  row: Pick<RegistrationRow, "id">,
  holder: string,
): Promise<void> {
  await db
    .deleteFrom("registrations")
    .where("id", "=", row.id)
    .where("leaseHolder", "=", holder)
    .where("state", "=", "removing")
    .execute();
}

/** Stores that the provider has confirmed a registration, and makes it due. */
export async function noteConfirmation(
  db: Queryable,
  id: string,
  nowMs: number,
  { expiresAtMs, renewAtMs }: { readonly expiresAtMs: number | null; readonly renewAtMs: number | null },
): Promise<void> {
  const now = new Date(nowMs);
  await db
    .updateTable("registrations")
    .set({
      confirmedAt: now,
      checkedAt: now,
      expiresAt: expiresAtMs === null ? null : new Date(expiresAtMs),
      renewAt: renewAtMs === null ? null : new Date(renewAtMs),
      nextAt: now,
    })
    // A worker that has not stored the response to its request yet must not postpone the next one.
    .set((eb) => ({ wanted: eb("wanted", "+", 1) }))
    .where("id", "=", id)
    .execute();
}
