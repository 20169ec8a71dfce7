import { readdir, readFile } from "node:fs/promises";
import { type PostgresSocket, startLocalPostgres } from "../../src/data/local-postgres.ts";
import { acquireDataLock } from "../../src/lib/servers/data-lock.ts";
import { createLog } from "../../src/log.ts";

/** A PostgreSQL shared by several gateways, with the durability settings of the embedded one. */
export interface BenchPostgres extends AsyncDisposable {
  readonly connection: PostgresSocket;
  /** Value of `DATABASE_URL`. */
  readonly url: string;
  /** Returns the CPU time of all its processes, including finished ones. */
  readonly cpuSeconds: () => Promise<number>;
}

/** Starts a PostgreSQL. @param dir absolute path without symbolic links */
export async function startBenchPostgres(dir: string): Promise<BenchPostgres> {
  await using starting = new AsyncDisposableStack();
  const lock = acquireDataLock(dir);
  if (!lock.ok) throw new Error(lock.error.message);
  const { dataDir } = starting.use(lock.value);
  const log = createLog({ level: "silent" });
  const server = starting.use(
    await startLocalPostgres({ dataDir, log, signal: new AbortController().signal }),
  );
  const { host, user, database } = server.connection;
  if (server.status.state !== "ready") throw new Error("PostgreSQL is not ready");
  const { pid } = server.status;
  const owned = starting.move();
  return {
    connection: server.connection,
    url: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
    cpuSeconds: () => cpuSecondsOfFamily(pid),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const TICKS_PER_SECOND = 100;

/** Returns the CPU time of a process, its children and its finished children: fields 14 to 17 of /proc/<pid>/stat (proc(5)). */
async function cpuSecondsOfFamily(parent: number): Promise<number> {
  let ticks = 0;
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, "utf8").catch(() => "");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const isParent = Number(name) === parent;
    if (!isParent && Number(fields[1]) !== parent) continue;
    for (const field of fields.slice(11, isParent ? 15 : 13)) ticks += Number(field);
  }
  return ticks / TICKS_PER_SECOND;
}
