import { createHash } from "node:crypto";
import type { Queryable } from "../database.ts";

/** Time in ms for which a callback URL need not answer another challenge. */
const CONFIRMED_MS = 86_400_000;

/** Returns whether a callback URL has recently answered a challenge. */
export async function isConfirmed(
  db: Queryable,
  { principal, url }: Callback,
  nowMs: number,
): Promise<boolean> {
  const row = await db
    .selectFrom("agentCallbacks")
    .select("principal")
    .where((eb) => eb.and({ principal, urlHash: hashUrl(url) }))
    .where("confirmedAt", ">", new Date(nowMs - CONFIRMED_MS))
    .executeTakeFirst();
  return row !== undefined;
}

export async function recordConfirmation(
  db: Queryable,
  { principal, url }: Callback,
  nowMs: number,
): Promise<void> {
  const confirmedAt = new Date(nowMs);
  await db
    .insertInto("agentCallbacks")
    .values({ principal, urlHash: hashUrl(url), confirmedAt })
    .onConflict((conflict) => conflict.columns(["principal", "urlHash"]).doUpdateSet({ confirmedAt }))
    .execute();
}

/** Deletes the records of callback URLs that must answer a new challenge. */
export async function expireConfirmations(db: Queryable, nowMs: number): Promise<void> {
  await db
    .deleteFrom("agentCallbacks")
    .where("confirmedAt", "<=", new Date(nowMs - CONFIRMED_MS))
    .execute();
}

interface Callback {
  readonly principal: string;
  readonly url: string;
}

const hashUrl = (url: string): Buffer => createHash("sha256").update(url).digest();
