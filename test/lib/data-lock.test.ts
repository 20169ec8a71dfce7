import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect, it } from "vitest";
import { acquireDataLock } from "../../src/lib/data-lock.ts";

const STARTERS = 20;
const SCRIPT = `
  import { acquireDataLock } from ${JSON.stringify(new URL("../../src/lib/data-lock.ts", import.meta.url).href)};
  process.stdin.once("data", () => {
    const lock = acquireDataLock(process.argv[1]);
    console.log(lock.ok ? "won" : "lost: " + lock.error.message);
    if (!lock.ok) process.exit(3);
    globalThis.held = lock.value;
  });
  console.log("standing");
`;

const made: string[] = [];
afterEach(() => {
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true });
});

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), "inlet-lock-"));
  made.push(dir);
  return join(dir, "data");
}

/** A process that stands at the line until `go`, then says `won` or `lost: …`; a winner holds until killed. */
async function starter(dataDir: string) {
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

it("has one winner among 20 processes that start at once, and the losers name it", async () => {
  const dataDir = folder();
  const starters = await Promise.all(Array.from({ length: STARTERS }, () => starter(dataDir)));
  try {
    const answers = await Promise.all(starters.map((one) => one.go()));
    const winners = starters.filter((_, index) => answers[index] === "won");
    expect(winners).toHaveLength(1);
    const lost = answers.filter((answer) => answer.startsWith("lost: "));
    expect(lost).toHaveLength(STARTERS - 1);
    for (const answer of lost) expect(answer).toContain(realpathSync(dataDir));

    const late = acquireDataLock(dataDir);
    expect(late.ok ? undefined : late.error.holderPid).toBe(winners[0]?.child.pid);
  } finally {
    await Promise.all(starters.map((one) => one.end()));
  }
});

it("ends with its process, though that is killed", async () => {
  const dataDir = folder();
  const first = await starter(dataDir);
  expect(await first.go()).toBe("won");
  await first.end();
  const second = acquireDataLock(dataDir);
  expect(second.ok).toBe(true);
  if (second.ok) second.value[Symbol.dispose]();
});

it("can be taken again once it is given back, and giving back twice is harmless", () => {
  const dataDir = folder();
  for (let round = 0; round < 2; round++) {
    const lock = acquireDataLock(dataDir);
    if (!lock.ok) throw new Error(lock.error.message);
    expect(acquireDataLock(dataDir)).toMatchObject({ ok: false, error: { holderPid: process.pid } });
    lock.value[Symbol.dispose]();
    lock.value[Symbol.dispose]();
  }
});

it("is one lock for all names of a directory, which nobody else may enter", () => {
  const dataDir = folder();
  const lock = acquireDataLock(dataDir);
  if (!lock.ok) throw new Error(lock.error.message);
  using held = lock.value;
  expect(held.dataDir).toBe(realpathSync(dataDir));
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  symlinkSync(dataDir, `${dataDir}-alias`);
  expect(acquireDataLock(`${dataDir}-alias`).ok).toBe(false);
});

it("throws where it cannot write, which is no other owner's doing", () => {
  const file = folder();
  writeFileSync(file, "");
  expect(() => acquireDataLock(join(file, "data"))).toThrow("ENOTDIR");
});
