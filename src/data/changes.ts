import { sql } from "kysely";
import type { Clock } from "../lib/clock.ts";
import { startLoop } from "../lib/loop.ts";
import type { Log } from "../log.ts";
import type { Queryable, Trx } from "./database.ts";

/** Something that can change under a cache, and its key. */
export interface Change {
  /**
   * Keyed by the channel's number, as is `source` (its cursor was set by hand); `access` (permissions: keys,
   * roles, memberships, accounts, identities) and `limits` by the organization's id; the others by their own.
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

/** Records a change of the transaction; the feed hands it on once that is committed. */
export const recordChange = (trx: Trx, change: Change): Promise<void> => recordChanges(trx, [change]);

export async function recordChanges(trx: Trx, changes: readonly Change[]): Promise<void> {
  if (changes.length === 0) return;
  await trx
    .insertInto("changes")
    .values(changes.map(({ kind, key }) => ({ kind, key })))
    .execute();
}

/** A worker that has not read changes for longer serves nothing from its caches, and runs no sources. */
export const MAX_STALENESS_MS = 600_000;

/** Caches and loops that follow the database. */
export interface ChangeListener {
  /** Drop what changed. Must bear being called again: a throw fails the poll, and the next one repeats it. */
  readonly onChange: (change: Change) => void;
  /** Changes may have been missed: everything must be dropped. */
  readonly onReset: () => void;
}

/** For those who react to changes. What was committed before the call is not handed on: read it after subscribing. */
export type ChangeSubscriptions = Pick<ChangeFeed, "subscribe">;

export interface ChangeFeedOptions {
  readonly db: Queryable;
  readonly log: Log;
  readonly clock: Clock;
  readonly pollEveryMs?: number;
  /** How long a change stays readable at least. */
  readonly retentionSeconds?: number;
  /** More changes than this in one poll are not looked at one by one: everything is dropped. */
  readonly maxChanges?: number;
}

export interface ChangeFeed extends AsyncDisposable {
  readonly subscribe: (listener: ChangeListener) => void;
  /** Time since the last read that succeeded was begun: everything committed before that has been handed on. */
  readonly stalenessMs: () => number;
  /** Reads now, beside the schedule: what was committed before the call is in force when it resolves. */
  readonly readNow: () => Promise<void>;
}

/** A reader away for longer than this share of the retention drops everything: a snapshot is older than its clock says. */
const TRUSTED_SHARE = 0.9;

/** The snapshot of a read, in PostgreSQL's text form, and its time by PostgreSQL's clock. */
interface Mark {
  readonly snapshot: string;
  readonly xmin: bigint;
  readonly atMs: number;
}

/**
 * Reads what others commit, once a second, from what is visible now on; caches are filled after it has started.
 *
 * A read takes the rows that it sees and that the snapshot of the last read did not: whatever the order in which
 * transactions commit, each row comes once and none is passed by. A transaction that is held open, in any database of the
 * server, holds back `xmin`, and so makes the scan longer, but nothing waits for it.
 *
 * @throws UnavailableError when the first read fails; later ones are repeated and logged.
 */
export async function startChangeFeed(options: ChangeFeedOptions): Promise<ChangeFeed> {
  const { db, log, clock, pollEveryMs = 1_000, retentionSeconds = 3_600 } = options;
  const listeners: ChangeListener[] = [];
  let lastReadAtMs = clock();
  let mark = await readMark(db);
  let reading: Promise<void> | undefined;
  let queued: Promise<void> | undefined;

  const read = async (): Promise<void> => {
    const startedAtMs = clock();
    const next = await readChanges(options, mark);
    const awayMs = next.mark.atMs - mark.atMs;
    // xmin goes back when the server was replaced by one that lacks its last transactions.
    const missed = awayMs > retentionSeconds * 1_000 * TRUSTED_SHARE || next.mark.xmin < mark.xmin;
    for (const listener of listeners) {
      if (missed || next.overflow) listener.onReset();
      else next.changes.forEach(listener.onChange);
    }
    mark = next.mark;
    lastReadAtMs = startedAtMs;
  };

  // A read that is under way may have begun before the caller's commit: callers that come during it share the next one.
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
    onRecovered: () => log.info({ event: "changes.recovered" }, "the change feed is read again"),
  });
  return {
    subscribe: (listener) => void listeners.push(listener),
    stalenessMs: () => clock() - lastReadAtMs,
    readNow,
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await Promise.allSettled([reading, queued]);
    },
  };
}

/** One statement sees one snapshot: `pg_current_snapshot()` names the very one by which its rows were chosen. */
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
  if (!row) throw new Error("a query without FROM gave no row");
  return { snapshot: row.snapshot, xmin: BigInt(row.xmin), atMs: row.at.getTime() };
}

/**
 * Removes rows that have been visible for the retention at least. A row's own time would not do: a transaction may write it
 * long before it commits. So the age of a row is that of the moment when all transactions up to its own were
 * finished. A row from beyond the server's newest transaction came with a dump from another server.
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
