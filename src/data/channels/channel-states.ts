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

/** In these states a channel that fetches runs, or is tried now and then. */
export const TRIED_STATES: readonly ChannelRow["state"][] = ["active", "error", "needsReauth"];

/** These states end with a person who resumes the channel or changes its settings; but for `paused`, also with a source that is well again. */
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

/** The outcome of running a source: it is well, or something stops it or slows it down. */
export type FoundState = "active" | StoppedState;

/**
 * Sets the state of a channel that fetches to what its source has found, if it is still the version for which that was found.
 * `paused` stops it. With `error` and `needsReauth` it is tried now and then: nothing of it has changed, so that its version stays,
 * and what runs goes on by its own waits. True where the state was another.
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
