import { recordChange } from "./changes.ts";
import type { Queryable, Trx } from "./database.ts";
import type { ChannelRow } from "./tables.ts";

/**
 * Stops a channel; one that is stopped stays as it is. With `keepsBack` its deliveries are kept from now on, under the number of
 * this pause, and run again once it is resumed.
 *
 * @param row locked by the transaction
 */
export async function pauseChannel(
  trx: Trx,
  row: ChannelRow,
  options: { readonly keepsBack: boolean; readonly nowMs: number },
): Promise<ChannelRow> {
  if (row.state === "paused") return row;
  const pause = options.keepsBack ? row.version + 1 : null;
  return writeState(trx, row, { state: "paused", pause }, options.nowMs);
}

/**
 * Lets a stopped channel go on; any other stays as it is. What was kept back still stands before what comes now: `pause`
 * goes when all of it is through.
 *
 * @param row locked by the transaction
 */
export async function resumeChannel(
  trx: Trx,
  row: ChannelRow,
  options: { readonly state: "active" | "needsSetup"; readonly nowMs: number },
): Promise<ChannelRow> {
  if (row.state !== "paused") return row;
  return writeState(trx, row, { state: options.state, pause: row.pause }, options.nowMs);
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
export interface ResumedChannel {
  readonly number: number;
  readonly organizationId: string;
  readonly pause: number;
}

/** The resumed channels, after the given number; or the one of that number, if it is one of them. */
export async function listResumed(
  db: Queryable,
  which: { readonly after: number; readonly limit: number } | { readonly number: number },
): Promise<readonly ResumedChannel[]> {
  const all = db
    .selectFrom("channels")
    .select(["number", "organizationId", "pause"])
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
