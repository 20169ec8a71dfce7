import { mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { acquireDataLock } from "../../../src/lib/servers/data-lock.ts";
import { raceForLock, starter } from "./lock-starters.ts";

const createdDirs: string[] = [];
afterEach(() => {
  for (const dir of createdDirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

function newDataDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "inlet-lock-"));
  createdDirs.push(dir);
  return join(dir, "data");
}

// test/deep/data-lock.test.ts runs this with 20 processes.
it("gives the lock to one of five concurrent processes, and tells the others which directory is in use", async () => {
  const dataDir = newDataDir();
  const { winners, refusals: losers, holderPid } = await raceForLock(dataDir, 5);
  expect(winners).toHaveLength(1);
  expect(losers).toHaveLength(4);
  for (const message of losers) expect(message).toContain(realpathSync(dataDir));
  expect(holderPid).toBe(winners[0]);
});

it("releases the lock when its process ends, even if it is killed", async () => {
  const dataDir = newDataDir();
  const first = await starter(dataDir);
  expect(await first.go()).toBe("won");
  await first.end();
  const second = acquireDataLock(dataDir);
  expect(second.ok).toBe(true);
  if (second.ok) second.value[Symbol.dispose]();
});

it("can be acquired again after release, and allows a second release", () => {
  const dataDir = newDataDir();
  for (let attempt = 0; attempt < 2; attempt++) {
    const lock = acquireDataLock(dataDir);
    if (!lock.ok) throw new Error(lock.error.message);
    expect(acquireDataLock(dataDir, 0)).toMatchObject({ ok: false, error: { holderPid: process.pid } });
    lock.value[Symbol.dispose]();
    lock.value[Symbol.dispose]();
  }
});

it("locks a directory under all of its names, and denies access to other users", () => {
  const dataDir = newDataDir();
  const lock = acquireDataLock(dataDir);
  if (!lock.ok) throw new Error(lock.error.message);
  using held = lock.value;
  expect(held.dataDir).toBe(realpathSync(dataDir));
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  symlinkSync(dataDir, `${dataDir}-alias`);
  expect(acquireDataLock(`${dataDir}-alias`, 0).ok).toBe(false);
});

it("throws for a directory that cannot be written, and does not report it as in use", () => {
  const file = newDataDir();
  writeFileSync(file, "");
  expect(() => acquireDataLock(join(file, "data"))).toThrow("ENOTDIR");
});
