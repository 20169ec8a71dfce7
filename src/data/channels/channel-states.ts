import type { ChannelIdentity } from "../../event/channel.ts";
import { recordChange } from "../changes.ts";
import type { Queryable, Trx } from "../database.ts";
import type { ChannelRow } from "../tables.ts";

/** States of a channel that is not stopped: active, or with an incomplete setup. */
export type ReadyState = "active" | "needsSetup" | "needsConnection";

/**
 * Returns the state of a channel unless it is stopped.
 *
 * @param setUp `needsSetup` if the channel kind reports that a required field is missing
 */
export function readyState(
  setUp: "active" | "needsSetup",
  { config, connectionId }: Pick<ChannelRow, "config" | "connectionId">,
): ReadyState {
  if (setUp === "active" && config.connection === "required" && connectionId === null)
    return "needsConnection";
  return setUp;
}

/** States in which a pull channel runs, or is retried at intervals after a failure. */
export const TRIED_STATES: readonly ChannelRow["state"][] = ["active", "error", "needsReauth"];

/**
 * States of a stopped channel. They end when a person resumes the channel or changes its config. `error` and `needsReauth` also
 * end when the source works again.
 */
export type StoppedState = "paused" | "error" | "needsReauth";

/**
 * Pauses a channel. Has no effect if it is already paused. With `buffersWhilePaused`, deliveries are stored under the number of
 * this pause, and processed once the channel is resumed.
 *
 * @param row row of the channel, locked by the transaction
 */
export async function pauseChannel(
  trx: Trx,
  row: ChannelRow,
  options: { readonly buffersWhilePaused: boolean; readonly nowMs: number },
): Promise<ChannelRow> {
  if (row.state === "paused") return row;
  const pause = options.buffersWhilePaused ? row.version + 1 : null;
  return writeState(trx, row, { state: "paused", pause }, options.nowMs);
}

/**
 * Resumes a channel that is paused or was stopped by an error. Has no effect on a channel in another state. The row keeps the
 * number of the pause, because its buffered deliveries must be processed before new ones.
 *
 * @param row row of the channel, locked by the transaction
 */
export async function resumeChannel(
  trx: Trx,
  row: ChannelRow,
  options: { readonly state: "active" | "needsSetup"; readonly nowMs: number },
): Promise<ChannelRow> {
  if (!STOPPED.includes(row.state)) return row;
  const state = readyState(options.state, row);
  return writeState(trx, row, { state, pause: row.pause }, options.nowMs);
}

const STOPPED: readonly ChannelRow["state"][] = ["paused", "error", "needsReauth"] satisfies StoppedState[];

export type FoundState = "active" | StoppedState;

/**
 * Sets the state that the source of a pull channel has reported, unless the channel was changed after the source read it. `paused`
 * stops the source. With `error` or `needsReauth`, the source continues to retry with its own backoff. The version stays the same,
 * because no field changes.
 *
 * @returns true if the state changed
 */
export async function setFoundState(
  db: Queryable,
  channel: Pick<ChannelRow, "number" | "version">,
  state: FoundState,
  nowMs: number,
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const row = await trx
      .updateTable("channels")
      .set({ state, updatedAt: new Date(nowMs) })
      .where("number", "=", channel.number)
      .where("version", "=", channel.version)
      .where("state", "in", TRIED_STATES)
      .where("state", "<>", state)
      .returning("number")
      .executeTakeFirst();
    if (row) await recordChange(trx, { kind: "channel", key: String(row.number) });
    return row !== undefined;
  });
}

/**
 * Resumes the channels that stopped because the grant of their connection was rejected. Call it in the transaction that stores a
 * new grant.
 */
export async function resumeReauthorized(trx: Trx, connectionId: string, nowMs: number): Promise<void> {
  const rows = await trx
    .selectFrom("channels")
    .selectAll()
    .where("connectionId", "=", connectionId)
    .where("state", "=", "needsReauth")
    .orderBy("number")
    .forUpdate()
    .execute();
  for (const row of rows) await writeState(trx, row, { state: "active", pause: row.pause }, nowMs);
}

/** Sets a channel's connection, which can make the channel active. @param row channel row, locked by the transaction */
export async function connectChannel(
  trx: Trx,
  row: ChannelRow,
  connectionId: string,
  nowMs: number,
): Promise<void> {
  const state = row.state === "needsConnection" ? "active" : row.state;
  await trx.updateTable("channels").set({ connectionId }).where("number", "=", row.number).execute();
  await writeState(trx, row, { state, pause: row.pause }, nowMs);
}

async function writeState(
  trx: Trx,
  { number, version }: ChannelRow,
  change: Pick<ChannelRow, "state" | "pause">,
  nowMs: number,
): Promise<ChannelRow> {
  await recordChange(trx, { kind: "channel", key: String(number) });
  return trx
    .updateTable("channels")
    .set({ ...change, version: version + 1, updatedAt: new Date(nowMs) })
    .where("number", "=", number)
    .returningAll()
    .executeTakeFirstOrThrow();
}

export interface ResumedChannel extends Omit<ChannelIdentity, "kind"> {
  readonly pause: number;
}

/** Lists resumed channels with buffered deliveries: a page after the given number, or only the channel with this number. */
export async function listResumed(
  db: Queryable,
  which: { readonly after: number; readonly limit: number } | { readonly number: number },
): Promise<readonly ResumedChannel[]> {
  const all = db
    .selectFrom("channels")
    .select(["number", "uid", "appId", "organizationId", "pause"])
    .where("pause", "is not", null)
    .where("state", "<>", "paused");
  const rows = await ("number" in which
    ? all.where("number", "=", which.number)
    : all.where("number", ">", which.after).orderBy("number").limit(which.limit)
  ).execute();
  return rows.flatMap(({ pause, ...row }) => (pause === null ? [] : [{ ...row, pause }]));
}

/** Records that all deliveries buffered during a pause were processed. Has no effect if the channel was paused again. */
export async function endPause(db: Queryable, { number, pause }: ResumedChannel): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const ended = await trx
      .updateTable("channels")
      .set({ pause: null })
      .where("number", "=", number)
      .where("pause", "=", pause)
      .where("state", "<>", "paused")
      .returning("number")
      .executeTakeFirst();
    if (ended) await recordChange(trx, { kind: "channel", key: String(number) });
  });
}
