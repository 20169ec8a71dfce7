import { sql } from "kysely";
import type { Clock } from "../../lib/clock.ts";
import { startLoop } from "../../lib/loop.ts";
import type { Log } from "../../log.ts";
import type { Queryable } from "../database.ts";

/** A rejected request to the management API. The ids of an unknown caller are empty strings. */
export interface AccessRejection {
  readonly organizationId: string;
  readonly accountId: string;
  readonly keyId: string;
  /** Client address. For unknown IPv6 callers, the /64 network, because one host can use every address in its /64. */
  readonly address: string;
  readonly status: 401 | 403;
}

/** Counts rejected requests in memory and writes the counts to the database every few seconds. Disposal writes the remaining counts. */
export interface RejectionCounts extends AsyncDisposable {
  readonly note: (refusal: AccessRejection) => void;
  /**
   * Writes the counts to the database now, not only at the next interval.
   *
   * @throws UnavailableError
   */
  readonly write: () => Promise<void>;
}

const WRITE_EVERY_MS = 10_000;
/**
 * Maximum number of counters in memory, and of database rows per organization and hour. Requests beyond it are counted together as
 * `OTHERS`.
 */
const MAX_COUNTED = 5_000;
const OTHERS = "others";
const HOUR_MS = 3_600_000;

export function startRejectionCounts(deps: {
  readonly db: Queryable;
  readonly clock: Clock;
  readonly log: Log;
  readonly writeEveryMs?: number;
}): RejectionCounts {
  const { db, clock, log, writeEveryMs = WRITE_EVERY_MS } = deps;
  let counts = new Map<string, { readonly refusal: AccessRejection; count: number }>();

  function note(refusal: AccessRejection, more = 1): void {
    const { organizationId, accountId, keyId, address, status } = refusal;
    const key = `${organizationId} ${accountId} ${keyId} ${status} ${address}`;
    const known = counts.get(key);
    if (known) known.count += more;
    else if (counts.size < MAX_COUNTED || address === OTHERS) counts.set(key, { refusal, count: more });
    else note({ organizationId, accountId: "", keyId: "", address: OTHERS, status }, more);
  }

  async function write(): Promise<void> {
    const writing = counts;
    if (writing.size === 0) return;
    counts = new Map();
    const nowMs = clock();
    const [hour, lastAt] = [new Date(nowMs - (nowMs % HOUR_MS)), new Date(nowMs)];
    const rows = [...writing.values()].map(({ refusal, count }) => ({ ...refusal, count }));
    try {
      await db.transaction().execute(async (trx) => {
        // Lets only one gateway write at a time. Concurrent writers would not see each other's new rows, and could exceed the maximum
        // number of rows.
        await sql`SELECT pg_advisory_xact_lock(hashtextextended('refusals', 0))`.execute(trx);
        await addCounts(rows, { hour, lastAt }).execute(trx);
      });
    } catch (error) {
      for (const { refusal, count } of writing.values()) note(refusal, count);
      throw error;
    }
  }

  const loop = startLoop({
    step: write,
    everyMs: writeEveryMs,
    waitsFirst: true,
    onFailing: (err) =>
      log.warn(
        { event: "audit.refusals_not_written", err },
        "counts of rejected requests could not be written yet",
      ),
    onRecovered: () =>
      log.info({ event: "audit.refusals_written" }, "counts of rejected requests are written again"),
  });
  return {
    note: (refusal) => note(refusal),
    write,
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await write().catch((err: unknown) => {
        log.warn({ event: "audit.refusals_lost", err }, "counts of rejected requests were lost");
      });
    },
  };
}

/**
 * Builds the statement that adds counts to the rows of this hour. When an organization reaches `MAX_COUNTED` rows, all remaining
 * requests are counted in the row `OTHERS`.
 *
 * Callers with the most requests get rows first.
 */
const addCounts = (
  rows: readonly (AccessRejection & { readonly count: number })[],
  { hour, lastAt }: { readonly hour: Date; readonly lastAt: Date },
) => sql`
  WITH given AS (
    SELECT * FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS given(
      "organizationId" text, "accountId" text, "keyId" text, address text, status integer, count bigint)
  ), held AS (
    SELECT organization_id, count(*) AS rows FROM audit_refusals
    WHERE hour = ${hour} AND address <> ${OTHERS} AND organization_id IN (SELECT "organizationId" FROM given)
    GROUP BY organization_id
  ), marked AS (
    SELECT given.*, given.address = ${OTHERS} OR EXISTS (
      SELECT FROM audit_refusals AS known
      WHERE (known.organization_id, known.hour, known.account_id, known.key_id, known.address, known.status)
        = (given."organizationId", ${hour}, given."accountId", given."keyId", given.address, given.status)
    ) AS has_row
    FROM given
  ), placed AS (
    SELECT marked.*, has_row OR coalesce(held.rows, 0)
      + row_number() OVER (PARTITION BY "organizationId", has_row ORDER BY count DESC) <= ${MAX_COUNTED} AS fits
    FROM marked LEFT JOIN held ON held.organization_id = "organizationId"
  )
  INSERT INTO audit_refusals (organization_id, hour, account_id, key_id, address, status, count, last_at)
  SELECT "organizationId", ${hour}::timestamptz, CASE WHEN fits THEN "accountId" ELSE '' END,
    CASE WHEN fits THEN "keyId" ELSE '' END, CASE WHEN fits THEN address ELSE ${OTHERS} END,
    status, sum(count), ${lastAt}::timestamptz
  FROM placed GROUP BY 1, 3, 4, 5, 6
  ON CONFLICT (organization_id, hour, account_id, key_id, address, status)
  DO UPDATE SET count = audit_refusals.count + excluded.count, last_at = excluded.last_at`;
