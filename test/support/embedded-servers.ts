/**
 * A program for tests that kill processes. Locks the data directory of its first argument and runs the server named by the second
 * (`postgres` or `redis`). Prints one line of JSON about the server, and stops it when standard input ends.
 */
import { startLocalRedis } from "../../src/bus/connection/local-redis.ts";
import type { ServerUser } from "../../src/data/local-postgres/server-user.ts";
import { startLocalPostgres } from "../../src/data/local-postgres.ts";
import { acquireDataLock } from "../../src/lib/servers/data-lock.ts";
import { createLog } from "../../src/log.ts";

const [dataDirArgument = "", which, user] = process.argv.slice(2);
const lock = acquireDataLock(dataDirArgument);
if (!lock.ok) throw new Error(lock.error.message);
{
  using held = lock.value;
  const log = createLog({ level: "silent" });
  const options = { dataDir: held.dataDir, log, signal: new AbortController().signal };
  await using stack = new AsyncDisposableStack();
  if (which === "postgres") {
    const forced = user ? { user: JSON.parse(user) as ServerUser } : {};
    const postgres = stack.use(await startLocalPostgres({ ...options, ...forced }));
    process.stdout.write(`${JSON.stringify({ ...postgres.status, connection: postgres.connection })}\n`);
  } else {
    const redis = stack.use(await startLocalRedis(options));
    process.stdout.write(`${JSON.stringify({ ...redis.status, socketPath: redis.socketPath })}\n`);
  }
  for await (const _ of process.stdin);
}
