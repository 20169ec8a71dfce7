import { chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect } from "vitest";
import type { PostgresSocket } from "../../src/data/local-postgres.ts";
import { processIncarnation } from "../../src/lib/servers/process-info.ts";
import { type OwnServerOptions, startOwnServer } from "../support/embedded-server-process.ts";
import { until } from "../support/until.ts";

/** Creates a data directory whose parent only its owner can access. */
export function makeDataDir(owner?: number, name = "data"): string {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), "inlet-own-pg-")));
  const dir = join(parent, name);
  mkdirSync(dir, { mode: 0o700 });
  if (owner !== undefined) for (const path of [parent, dir]) chownSync(path, owner, owner);
  return dir;
}

export async function query<Row extends object>(connection: PostgresSocket, sql: string): Promise<Row[]> {
  const client = new pg.Client(connection);
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

const isGone = async (pid: number) => (await processIncarnation(pid)) === undefined;

/** Checks that the server is taken over after a kill of the gateway, recovers after a kill of both, and stops on request. */
export async function survivesKills(
  options: Pick<OwnServerOptions, "user" | "uid"> & { readonly dataDir?: string },
): Promise<void> {
  const dataDir = options.dataDir ?? makeDataDir(options.uid);
  const start = () => startOwnServer({ which: "postgres", ...options, dataDir });
  try {
    const first = await start();
    expect(first.report.adopted).toBe(false);
    const { connection, pid } = first.report;
    await query(connection, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)");
    await first.killGroup();

    const second = await start();
    expect(second.report).toMatchObject({ adopted: true, pid, connection });
    await query(connection, "INSERT INTO kept VALUES (2)");
    await second.killGroup();
    process.kill(pid, "SIGKILL");
    await until(() => isGone(pid));

    const third = await start();
    expect(third.report).toMatchObject({ adopted: false, connection });
    expect(await query(connection, "SELECT n FROM kept ORDER BY n")).toEqual([{ n: 1 }, { n: 2 }]);
    await third.stop();
    expect(await isGone(third.report.pid)).toBe(true);
  } finally {
    if (options.dataDir === undefined)
      rmSync(join(dataDir, ".."), { recursive: true, force: true, maxRetries: 5 });
  }
}
