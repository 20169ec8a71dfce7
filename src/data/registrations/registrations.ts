import { sql } from "kysely";
import { createId } from "../../lib/ids.ts";
import type { Queryable, Trx } from "../database.ts";
import type { ChannelRow, Row } from "../tables.ts";

export type RegistrationRow = Row<"registrations">;

/** The registration that a channel's config asks for. The target and its parameters decide which object of the provider sends. */
export interface WantedRegistration {
  readonly preset: string;
  readonly target: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly baseUrl: string | null;
  readonly connectionId: string | null;
}

/** Returns the registration that a stored config asks for. The config was validated when it was written. */
function readWanted({ preset, registration }: ChannelRow["config"]): WantedRegistration | undefined {
  if (registration === undefined) return undefined;
  const { target, params, baseUrl = null, connectionId = null } = registration as WantedRegistration;
  return { preset: String(preset), target, params, baseUrl, connectionId };
}

/** Time of a row that waits for another one. */
const NEVER = sql<Date>`'infinity'`;

/**
 * Stores the registration that the channel's config asks for, in the transaction that writes the channel. A worker then calls the provider. Registrations
 * of another target or object stay valid until the new one is active.
 */
export async function followChannel(trx: Trx, channel: ChannelRow, nowMs: number): Promise<void> {
  const wanted = readWanted(channel.config);
  const current = await currentRegistration(trx, channel.number).forUpdate().executeTakeFirst();
  if (wanted === undefined) return releaseChannel(trx, channel.number, nowMs);
  const now = new Date(nowMs);
  // With another connection, the provider may be another account, where the registration does not exist.
  const isElsewhere = current?.providerId !== null && current?.connectionId !== wanted.connectionId;
  if (current && isSameObject(current, wanted) && !isElsewhere) {
    await trx
      .updateTable("registrations")
      // The error belongs to the settings until now.
      .set({ connectionId: wanted.connectionId, nextAt: now, failures: 0, lastError: null, updatedAt: now })
      .set((eb) => ({ wanted: eb("wanted", "+", 1) }))
      .where("id", "=", current.id)
      .execute();
    return;
  }
  await insertRegistration(trx, channel, wanted, current, nowMs);
}

/** Replaces a registration by a new one for the same object, because the provider cannot change or extend it. */
export async function replaceRegistration(
  db: Queryable,
  row: RegistrationRow,
  holder: string,
  { nowMs, lapsedAtMs }: { readonly nowMs: number; readonly lapsedAtMs: number | undefined },
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    // This worker sends no more requests for the old registration.
    const current = await trx
      .updateTable("registrations")
      .set({ leaseHolder: null, leaseExpiresAt: null })
      .where("id", "=", row.id)
      .where("leaseHolder", "=", holder)
      .returningAll()
      .executeTakeFirst();
    // A channel that was changed meanwhile is due again.
    if (!current || current.wanted !== row.wanted || current.channelNumber === null) return;
    const channel = { ...current, number: current.channelNumber, uid: current.channelUid };
    await insertRegistration(trx, channel, current, current, nowMs);
    if (lapsedAtMs === undefined) return;
    await trx
      .updateTable("registrations")
      .set({ lapsedAt: new Date(lapsedAtMs) })
      .where("channelNumber", "=", current.channelNumber)
      .where("state", "=", "creating")
      .execute();
  });
}

/** @param before the channel's registration until now, which is removed once the new one is active */
async function insertRegistration(
  trx: Trx,
  { number, uid, appId, organizationId }: Pick<ChannelRow, "number" | "uid" | "appId" | "organizationId">,
  { preset, target, params, baseUrl, connectionId }: WantedRegistration,
  before: RegistrationRow | undefined,
  nowMs: number,
): Promise<void> {
  const now = new Date(nowMs);
  const id = createId("reg", nowMs);
  const replaced = (change: { readonly replacedBy?: string }) =>
    trx
      .updateTable("registrations")
      .set({ state: "removing", nextAt: NEVER, updatedAt: now, ...change })
      .set((eb) => ({ wanted: eb("wanted", "+", 1) }))
      .where("id", "=", before?.id ?? "")
      .execute();
  // A channel has at most one registration that is not being removed.
  if (before) await replaced({});
  await trx
    .insertInto("registrations")
    .values({
      id,
      organizationId,
      appId,
      channelUid: uid,
      channelNumber: number,
      replacedBy: null,
      connectionId,
      preset,
      target,
      baseUrl,
      params: JSON.stringify(params),
      state: "creating",
      providerId: null,
      sealedContents: null,
      nextAt: now,
      leaseHolder: null,
      createdAt: now,
      updatedAt: now,
    })
    .execute();
  if (before === undefined) return;
  await replaced({ replacedBy: id });
  // Those that still wait for the replaced registration now wait for the new one.
  await trx
    .updateTable("registrations")
    .set({ replacedBy: id })
    .where("replacedBy", "=", before.id)
    .execute();
}

export const isSameObject = (row: RegistrationRow, wanted: WantedRegistration): boolean =>
  row.preset === wanted.preset &&
  row.target === wanted.target &&
  row.baseUrl === wanted.baseUrl &&
  canonical(row.params) === canonical(wanted.params);

const canonical = (params: Readonly<Record<string, unknown>>): string =>
  JSON.stringify(Object.entries(params).sort(([a], [b]) => (a < b ? -1 : 1)));

/** The channel's registration, apart from those that are being removed. */
export const currentRegistration = (db: Queryable, channelNumber: number) =>
  db
    .selectFrom("registrations")
    .selectAll()
    .where("channelNumber", "=", channelNumber)
    .where("state", "<>", "removing")
    .where("replacedBy", "is", null);

/** Lists the other registrations of the channel. */
export function listSiblings(
  db: Queryable,
  { id, channelNumber, organizationId, appId, channelUid }: RegistrationRow,
): Promise<readonly RegistrationRow[]> {
  const others = db.selectFrom("registrations").selectAll().where("id", "<>", id).limit(MAX_SIBLINGS);
  const ofChannel =
    channelNumber === null
      ? others.where("channelNumber", "is", null).where((eb) => eb.and({ organizationId, appId, channelUid }))
      : others.where("channelNumber", "=", channelNumber);
  return ofChannel.execute();
}

/** Maximum number of siblings that are read. A channel has more of them only after as many failed removals. */
const MAX_SIBLINGS = 100;

/** Schedules the removal of a deleted channel's registrations at the provider. Call it in the transaction that deletes the channel. */
export async function releaseChannel(trx: Trx, channelNumber: number, nowMs: number): Promise<void> {
  const rows = await trx
    .selectFrom("registrations")
    .selectAll()
    .where("channelNumber", "=", channelNumber)
    .forUpdate()
    .execute();
  await releaseRegistrations(trx, rows, nowMs);
}

async function releaseRegistrations(
  trx: Trx,
  rows: readonly RegistrationRow[],
  nowMs: number,
): Promise<void> {
  const [unsent, sent] = [true, false].map((isUnsent) =>
    rows.filter(({ attemptedAt }) => (attemptedAt === null) === isUnsent).map(({ id }) => id),
  ) as [string[], string[]];
  if (sent.length > 0)
    await trx
      .updateTable("registrations")
      .set({
        state: "removing",
        channelNumber: null,
        replacedBy: null,
        failures: 0,
        nextAt: new Date(nowMs),
        updatedAt: new Date(nowMs),
      })
      .set((eb) => ({ wanted: eb("wanted", "+", 1) }))
      .where("id", "in", sent)
      .execute();
  // The provider knows nothing of these, because a worker records its first request before it sends it.
  if (unsent.length > 0) await trx.deleteFrom("registrations").where("id", "in", unsent).execute();
}

/** Makes the channel's registration due, because a person asked for a check or the channel's address changed. */
export async function requestAction(
  trx: Trx,
  channelNumber: number,
  nowMs: number,
  action: "check" | "recreate" | "renew" = "check",
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable("registrations")
    .set({
      nextAt: new Date(nowMs),
      failures: 0,
      updatedAt: new Date(nowMs),
      ...(action === "renew" && { renewAt: new Date(nowMs) }),
      ...(action === "recreate" && { state: "lapsed" as const }),
    })
    .set((eb) => ({ wanted: eb("wanted", "+", 1) }))
    .where("channelNumber", "=", channelNumber)
    .where("state", "<>", "removing")
    .where("replacedBy", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Makes failed registrations due whose connection was changed or authorized again. */
export async function retryRegistrations(trx: Trx, connectionId: string, nowMs: number): Promise<void> {
  await trx
    .updateTable("registrations")
    .set({ nextAt: new Date(nowMs), failures: 0 })
    .where("connectionId", "=", connectionId)
    .where("failures", ">", 0)
    .execute();
}

/**
 * Stores the hooks URL of this gateway as long as no provider has a registration with another one. Returns whether the registrations
 * belong to this URL. If not, this is a copy of another system, or its address has changed.
 */
export async function claimHooksUrl(db: Queryable, hooksUrl: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("cluster")
    .set({ registeredHooksUrl: hooksUrl })
    .where(sql<boolean>`registered_hooks_url IS DISTINCT FROM ${hooksUrl}`)
    .where(
      // A restored database has an empty URL. Its registrations may belong to a system that still runs, even those that were never sent.
      sql<boolean>`NOT EXISTS (SELECT FROM registrations WHERE attempted_at IS NOT NULL OR registered_hooks_url = '')`,
    )
    .executeTakeFirst();
  return numUpdatedRows > 0n || (await isAdopted(db, hooksUrl));
}

/** Returns whether there are registrations for which this gateway sends no requests. */
export async function hasSuspended(db: Queryable, hooksUrl: string): Promise<boolean> {
  if (await isAdopted(db, hooksUrl)) return false;
  return (await db.selectFrom("registrations").select("id").limit(1).executeTakeFirst()) !== undefined;
}

/** Returns whether this gateway may send requests for registrations. */
export async function isAdopted(db: Queryable, hooksUrl: string): Promise<boolean> {
  const cluster = await db.selectFrom("cluster").select("registeredHooksUrl").executeTakeFirst();
  return [null, hooksUrl].includes(cluster?.registeredHooksUrl ?? null);
}

/** Assigns all registrations to this hooks URL and makes them due, so that workers give the new addresses to the providers. */
export async function adoptRegistrations(db: Queryable, hooksUrl: string, nowMs: number): Promise<number> {
  return db.transaction().execute(async (trx) => {
    await trx.updateTable("cluster").set({ registeredHooksUrl: hooksUrl }).execute();
    const { numUpdatedRows } = await trx
      .updateTable("registrations")
      .set({ nextAt: new Date(nowMs), failures: 0 })
      .set((eb) => ({ wanted: eb("wanted", "+", 1) }))
      .where("nextAt", "<", NEVER)
      .executeTakeFirst();
    return Number(numUpdatedRows);
  });
}
