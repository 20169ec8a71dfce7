import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { acquireDataLock } from "../../../src/lib/servers/data-lock.ts";

const SCRIPT = `
  import { acquireDataLock } from ${JSON.stringify(new URL("../../../src/lib/servers/data-lock.ts", import.meta.url).href)};
  process.stdin.once("data", () => {
    const lock = acquireDataLock(process.argv[1]);
    console.log(lock.ok ? "won" : "lost: " + lock.error.message);
    if (!lock.ok) process.exit(3);
    globalThis.held = lock.value;
  });
  console.log("ready");
`;

/** A process that waits for `go`, then prints `won` or `lost: …`. The winner holds the lock until it is killed. */
export async function starter(dataDir: string) {
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", SCRIPT, dataDir];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  return {
    child,
    async go(): Promise<string> {
      child.stdin.write("go\n");
      return String((await lines.next()).value);
    },
    async end(): Promise<void> {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

/** Makes several processes acquire the lock at the same moment. `refusals` contains the messages of those without the lock. */
export async function raceForLock(dataDir: string, count: number) {
  const starters = await Promise.all(Array.from({ length: count }, () => starter(dataDir)));
  try {
    const results = await Promise.all(starters.map((starter) => starter.go()));
    const late = acquireDataLock(dataDir, 0);
    return {
      winners: starters.filter((_, index) => results[index] === "won").map(({ child }) => child.pid),
      refusals: results.filter((result) => result.startsWith("lost: ")),
      holderPid: late.ok ? undefined : late.error.holderPid,
    };
  } finally {
    await Promise.all(starters.map((starter) => starter.end()));
  }
}
