import { sql } from "kysely";
import { startLoop } from "../lib/loop.ts";
import type { Log } from "../log.ts";
import type { Database } from "./database.ts";

export type WriteWatch = ReturnType<typeof startWriteWatch>;

const TICK_MS = 5_000;
/** Interval at which a write is tested although none has failed, because a gateway that only serves hooks never writes. */
const PROBE_EVERY_MS = 60_000;

/**
 * Starts to check whether PostgreSQL accepts writes. Events do not need them, so that a gateway with a full database disk still accepts
 * deliveries, but rejects every change of its configuration.
 */
export function startWriteWatch(deps: {
  readonly database: Database;
  readonly log: Log;
  readonly tickMs?: number;
}) {
  const { database, log, tickMs = TICK_MS } = deps;
  let probedAtMs = Number.NEGATIVE_INFINITY;
  let reported: string | undefined;

  function report(): void {
    const problem = database.writeProblem();
    if (problem === reported) return;
    reported = problem;
    if (problem === undefined) log.info({ event: "database.writable" }, "PostgreSQL accepts writes again");
    else log.error({ event: "database.not_writable", problem }, "PostgreSQL rejects writes");
  }

  async function step(): Promise<void> {
    report();
    if (reported === undefined && performance.now() - probedAtMs < PROBE_EVERY_MS) return;
    probedAtMs = performance.now();
    await probe(database).finally(report);
  }

  const loop = startLoop({
    step,
    everyMs: tickMs,
    onFailing: (err) =>
      log.debug({ event: "database.probe_failed", err }, "a test write to PostgreSQL failed"),
  });
  return {
    problem: database.writeProblem,
    [Symbol.asyncDispose]: loop[Symbol.asyncDispose],
  };
}

/** Writes a temporary table of 1 MiB, which needs new disk space, and rolls it back. */
async function probe({ db, clearWriteProblem }: Database): Promise<void> {
  const trx = await db.startTransaction().execute();
  try {
    await sql`
      CREATE TEMPORARY TABLE inlet_write_probe ON COMMIT DROP AS
      SELECT string_agg(md5(n::text), '') FROM generate_series(1, 32768) AS n`.execute(trx);
    clearWriteProblem();
  } finally {
    await trx.rollback().execute();
  }
}
