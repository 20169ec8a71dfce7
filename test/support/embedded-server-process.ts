import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { PostgresSocket } from "../../src/data/local-postgres.ts";

const PROGRAM = join(import.meta.dirname, "embedded-servers.ts");

export interface OwnServerReport {
  readonly state: string;
  readonly pid: number;
  readonly adopted: boolean;
  readonly connection: PostgresSocket;
  readonly socketPath: string;
}

export interface OwnServerProcess {
  readonly report: OwnServerReport;
  /** Sends SIGKILL to the whole process group. */
  readonly killGroup: () => Promise<void>;
  /** Makes the program stop its server and exit. */
  readonly stop: () => Promise<void>;
}

export interface OwnServerOptions {
  readonly dataDir: string;
  readonly which: "postgres" | "redis";
  readonly user?: object;
  /** The user to run as. Default: the tests' own user. */
  readonly uid?: number;
}

/** Runs `embedded-servers.ts` in its own process group and waits until its server is ready. */
export async function startOwnServer(options: OwnServerOptions): Promise<OwnServerProcess> {
  const { dataDir, which, user, uid } = options;
  const args = ["--disable-warning=ExperimentalWarning", PROGRAM, dataDir, which];
  const child = spawn(process.execPath, user ? [...args, JSON.stringify(user)] : args, {
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
    ...(uid !== undefined && { uid, gid: uid }),
  });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk;
  });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value, done } = await lines.next();
  if (done || child.pid === undefined) throw new Error(`no server: ${errors}`);
  const { pid } = child;
  return {
    report: JSON.parse(value) as OwnServerReport,
    async killGroup() {
      process.kill(-pid, "SIGKILL");
      await exited;
    },
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}
