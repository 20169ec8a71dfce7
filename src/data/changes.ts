import { sql } from "kysely";
import { startLoop } from "../lib/loop.ts";
import type { Log } from "../log.ts";
import type { Queryable, Trx } from "./database.ts";

/** A committed change in the database, reported to all gateways so that they refresh their caches. */
export interface Change {
  /**
   * Kind of the changed object. It determines what `key` contains.
   *
   * - The key of `channel` and `source` is the internal channel id. A `source` change means that the cursor was set manually.
   * - The key of `access` and `limits` is the organization's id. `access` covers keys, roles, memberships, accounts and identities.
   * - The key of all other kinds is the object's own id.
   */
  readonly kind:
    | "channel"
    | "source"
    | "app"
    | "subscription"
    | "connection"
    | "access"
    | "limits"
    | "masterKey";
  readonly key: string;
}

/** Adds a change to the current transaction. All gateways are notified of the change after the transaction commits. */
export const recordChange = (trx: Trx, change: Change): Promise<void> => recordChanges(trx, [change]);

export async function recordChanges(trx: Trx, changes: readonly Change[]): Promise<void> {
  if (changes.length === 0) return;
  await trx
    .insertInto("changes")
    .values(changes.map(({ kind, key }) => ({ kind, key })))
    .execute();
}

/** Maximum time in ms without reading committed changes. A worker that exceeds it stops using its caches and stops its sources. */
export const MAX_STALENESS_MS = 600_000;

export interface ChangeListener {
  /**
   * Called for each change. May be called twice for the same change, because an error in any listener makes the next poll repeat
   * all changes.
   */
  readonly onChange: (change: Change) => void;
  /** Called when changes may have been missed. The listener must then drop everything it has cached. */
  readonly onReset: () => void;
}

/**
 * Notifies subscribers of committed changes. Changes before the subscription are not reported, so subscribe before reading the
 * current state.
 */
export type ChangeSubscriptions = Pick<ChangeFeed, "subscribe">;

export interface ChangeFeedOptions {
  readonly db: Queryable;
  readonly log: Log;
  /** Monotonic clock, in milliseconds. A wall clock that is set forward would make the feed look stale. */
  readonly nowMs?: () => number;
  readonly pollEveryMs?: number;
  /** Minimum time in seconds before a change is deleted from the table. Deletion may happen later. */
  readonly retentionSeconds?: number;
  /** Maximum number of changes per poll. If there are more, listeners get `onReset` instead, and must drop their caches. */
  readonly maxChanges?: number;
}

export interface ChangeFeed extends AsyncDisposable {
  readonly subscribe: (listener: ChangeListener) => void;
  /** Returns the time in ms since the last successful read started. Earlier commits have been reported. */
  readonly stalenessMs: () => number;
  /** Reads committed changes now, not only at the next poll. Resolves once all commits before this call have been reported. */
  readonly readNow: () => Promise<void>;
}

/**
 * Maximum time between two reads, as a fraction of the retention time. After a longer gap, all listeners must drop their caches.
 *
 * The fraction is below 1, because a snapshot is older than its timestamp.
 */
const TRUSTED_SHARE = 0.9;

/** The PostgreSQL snapshot of a read in text format, and its time by PostgreSQL's clock. */
interface Mark {
  readonly snapshot: string;
  readonly xmin: bigint;
  readonly atMs: number;
}

/**
 * Starts the change feed, which reads committed changes once a second. Fill caches only after it has started.
 *
 * Each read returns the rows that are visible now but were not visible in the snapshot of the previous read. Every row is
 * therefore reported exactly once, regardless of the order in which transactions commit.
 *
 * A long transaction in any database of the server keeps `xmin` low. Each read then scans more rows, but no reader is blocked.
 *
 * @throws UnavailableError if the first read fails. Later failures are logged and retried
 */
export async function startChangeFeed(options: ChangeFeedOptions): Promise<ChangeFeed> {
  const { db, log, pollEveryMs = 1_000, retentionSeconds = 3_600 } = options;
  const { nowMs = () => performance.now() } = options;
  const listeners: ChangeListener[] = [];
  let lastReadAtMs = nowMs();
  let mark = await readMark(db);
  let reading: Promise<void> | undefined;
  let queued: Promise<void> | undefined;

  const read = async (): Promise<void> => {
    const startedAtMs = nowMs();
    const next = await readChanges(options, mark);
    const awayMs = next.mark.atMs - mark.atMs;
    // A lower `xmin` than before means that the server was replaced by one that lacks the latest transactions.
    const missed = awayMs > retentionSeconds * 1_000 * TRUSTED_SHARE || next.mark.xmin < mark.xmin;
    for (const listener of listeners) {
      if (missed || next.overflow) listener.onReset();
      else next.changes.forEach(listener.onChange);
    }
    mark = next.mark;
    lastReadAtMs = startedAtMs;
  };

  // Callers that arrive during a read share the next read, because the current read may miss the commit they want to see.
  const readNow = (): Promise<void> => {
    if (!reading) {
      reading = read().finally(() => {
        reading = undefined;
      });
      return reading;
    }
    queued ??= reading
      .catch(() => {})
      .then(() => {
        queued = undefined;
        return readNow();
      });
    return queued;
  };

  const loop = startLoop({
    waitsFirst: true,
    everyMs: pollEveryMs,
    async step() {
      await readNow();
      await pruneChanges(db, retentionSeconds);
    },
    onFailing: (err) => log.warn({ event: "changes.failing", err }, "the change feed cannot be read"),
    onRecovered: () => log.info({ event: "changes.recovered" }, "the change feed can be read again"),
  });
  return {
    subscribe: (listener) => void listeners.push(listener),
    stalenessMs: () => nowMs() - lastReadAtMs,
    readNow,
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await Promise.allSettled([reading, queued]);
    },
  };
}

/** Reads the snapshot in which this statement runs. It is exactly the snapshot that decides which rows the statement can see. */
async function readMark(db: Queryable): Promise<Mark> {
  const { rows } = await sql<MarkRow>`
    SELECT ${MARK_COLUMNS}`.execute(db);
  return toMark(rows[0]);
}

async function readChanges(
  options: ChangeFeedOptions,
  mark: Mark,
): Promise<{ readonly mark: Mark; readonly changes: readonly Change[]; readonly overflow: boolean }> {
  const { db, maxChanges = 5_000 } = options;
  const { rows } = await sql<MarkRow & { kind: Change["kind"] | null; key: string }>`
    SELECT ${MARK_COLUMNS}, fresh.kind, fresh.key
    FROM (SELECT) AS one
    LEFT JOIN (
      SELECT id, kind, key FROM changes
      WHERE xid >= pg_snapshot_xmin(${mark.snapshot}::pg_snapshot)
        AND NOT pg_visible_in_snapshot(xid, ${mark.snapshot}::pg_snapshot)
      ORDER BY id
      LIMIT ${maxChanges + 1}
    ) AS fresh ON true
    ORDER BY fresh.id`.execute(db);
  const changes = rows.flatMap(({ kind, key }) => (kind === null ? [] : [{ kind, key }]));
  return { mark: toMark(rows[0]), changes, overflow: changes.length > maxChanges };
}

interface MarkRow {
  snapshot: string;
  xmin: string;
  at: Date;
}

const MARK_COLUMNS = sql`
  pg_current_snapshot()::text AS snapshot,
  pg_snapshot_xmin(pg_current_snapshot())::text AS xmin,
  clock_timestamp() AS at`;

function toMark(row: MarkRow | undefined): Mark {
  if (!row) throw new Error("a query without FROM returned no row");
  return { snapshot: row.snapshot, xmin: BigInt(row.xmin), atMs: row.at.getTime() };
}

/**
 * Deletes changes that have been visible for at least the retention time.
 *
 * The timestamp of a row does not tell when the row became visible, because its transaction may commit much later. The age is
 * therefore counted from the moment when all transactions up to that of the row had finished. Rows whose transaction id is above
 * the server's newest one came from a dump of another server, and are deleted too.
 */
async function pruneChanges(db: Queryable, retentionSeconds: number): Promise<void> {
  const due = await db
    .selectFrom("changesPruned")
    .select("singleton")
    .where(sql<boolean>`at < clock_timestamp() - make_interval(secs => ${retentionSeconds})`)
    .executeTakeFirst();
  if (!due) return;
  await db.transaction().execute(async (trx) => {
    const pruned = await trx
      .selectFrom("changesPruned")
      .select(sql<string>`xid::text`.as("xid"))
      .where(sql<boolean>`at < clock_timestamp() - make_interval(secs => ${retentionSeconds})`)
      .forUpdate()
      .executeTakeFirst();
    if (!pruned) return;
    await sql`
      DELETE FROM changes
      WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())
         OR (xid < ${pruned.xid}::xid8 AND ${pruned.xid}::xid8 <= pg_snapshot_xmax(pg_current_snapshot()))`.execute(
      trx,
    );
    await sql`
      UPDATE changes_pruned
      SET xid = pg_snapshot_xmin(pg_current_snapshot()), at = clock_timestamp()`.execute(trx);
  });
}
