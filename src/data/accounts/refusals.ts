import { sql } from "kysely";
import type { Clock } from "../../lib/clock.ts";
import { startLoop } from "../../lib/loop.ts";
import type { Log } from "../../log.ts";
import type { Queryable } from "../database.ts";

/** A request of the management API that was refused; what is not known of its caller is empty. */
export interface Refusal {
  readonly organizationId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly address: string;
  readonly status: 401 | 403;
}

/** Counts refusals in memory and writes the counts now and then. Disposal writes what is left. */
export interface RefusalCounts extends AsyncDisposable {
  readonly note: (refusal: Refusal) => void;
  /** Writes what was counted on this worker. @throws UnavailableError */
  readonly write: () => Promise<void>;
}

const WRITE_EVERY_MS = 10_000;
/** Different ones between two writes; further addresses are counted as one. */
const MAX_COUNTED = 5_000;
const OTHERS = "others";
const HOUR_MS = 3_600_000;

export function startRefusalCounts(deps: {
  readonly db: Queryable;
  readonly clock: Clock;
  readonly log: Log;
  readonly writeEveryMs?: number;
}): RefusalCounts {
  const { db, clock, log, writeEveryMs = WRITE_EVERY_MS } = deps;
  let counts = new Map<string, { readonly refusal: Refusal; count: number }>();

  function note(refusal: Refusal, more = 1): void {
    const { organizationId, accountId, keyId, address, status } = refusal;
    const key = `${organizationId} ${accountId} ${keyId} ${status} ${address}`;
    const known = counts.get(key);
    if (known) known.count += more;
    else if (counts.size < MAX_COUNTED || address === OTHERS) counts.set(key, { refusal, count: more });
    else note({ organizationId: "", accountId: "", keyId: "", address: OTHERS, status }, more);
  }

  async function write(): Promise<void> {
    const writing = counts;
    if (writing.size === 0) return;
    counts = new Map();
    const nowMs = clock();
    const [hour, lastAt] = [new Date(nowMs - (nowMs % HOUR_MS)), new Date(nowMs)];
    const rows = [...writing.values()].map(({ refusal, count }) => ({ ...refusal, count, hour, lastAt }));
    try {
      await db
        .insertInto("auditRefusals")
        .values(rows)
        .onConflict((conflict) =>
          conflict
            .columns(["organizationId", "hour", "accountId", "keyId", "address", "status"])
            .doUpdateSet({
              count: sql`audit_refusals.count + excluded.count`,
              lastAt: sql`excluded.last_at`,
            }),
        )
        .execute();
    } catch (error) {
      for (const { refusal, count } of writing.values()) note(refusal, count);
      throw error;
    }
  }

  const loop = startLoop({
    step: write,
    everyMs: writeEveryMs,
    waitsFirst: true,
    onFailing: (err) => log.warn({ event: "audit.refusals_not_written", err }, "counts of refusals wait"),
    onRecovered: () => log.info({ event: "audit.refusals_written" }, "counts of refusals are written again"),
  });
  return {
    note: (refusal) => note(refusal),
    write,
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await write().catch((err: unknown) => {
        log.warn({ event: "audit.refusals_lost", err }, "counts of refusals are lost");
      });
    },
  };
}
