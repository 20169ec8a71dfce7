import type { ChannelIdentity } from "../../event/channel.ts";
import { recordChange } from "../changes.ts";
import type { Queryable, Trx } from "../database.ts";
import type { ChannelRow } from "../tables.ts";

/** States of a channel that is not stopped: it works, or it lacks something. */
export type ReadyState = "active" | "needsSetup" | "needsConnection";

/** @param setUp whether its kind finds all settings that it needs */
export function readyState(
  setUp: "active" | "needsSetup",
  { config, connectionId }: Pick<ChannelRow, "config" | "connectionId">,
): ReadyState {
  if (setUp === "active" && config.connection === "required" && connectionId === null)
    return "needsConnection";
  return setUp;
}

/** These states stop a channel that fetches, until a person resumes it or changes its settings. */
export type StoppedState = "paused" | "error" | "needsReauth";

/**
 * Stops a channel; one that is stopped stays as it is. With `buffersWhilePaused` its deliveries are buffered from now on,
 * under the number of this pause, and run once it is resumed.
 *
 * @param row locked by the transaction
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
 * Lets a channel go on that was paused, or stopped by what went wrong with it; any other stays as it is. What was buffered
 * still stands before what comes now: `pause` goes when all of it is through.
 *
 * @param row locked by the transaction
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

/** Stops a channel that fetches, if it is active and still the version for which that was found. */
export async function stopSource(
  db: Queryable,
  channel: Pick<ChannelRow, "number" | "version">,
  state: StoppedState,
  nowMs: number,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom("channels")
      .selectAll()
      .where("number", "=", channel.number)
      .where("version", "=", channel.version)
      .where("state", "=", "active")
      .forUpdate()
      .executeTakeFirst();
    if (row) await writeState(trx, row, { state, pause: row.pause }, nowMs);
  });
}

/** Lets the channels go on that a connection's dead grant has stopped: to be called in the transaction that stores a new one. */
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

/** Gives a channel its connection, by which it may be ready to work. @param row locked by the transaction */
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

/** A channel that was resumed and still has deliveries of before. */
export interface ResumedChannel extends Omit<ChannelIdentity, "kind"> {
  readonly pause: number;
}

/** The resumed channels, after the given number; or the one of that number, if it is one of them. */
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

/** Says that all that a pause had kept back is through; nothing where the channel was paused again. */
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
