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
it("the lock of a data directory is acquired by one of five processes, and the rest get an error with the directory", async () => {
  const dataDir = newDataDir();
  const { winners, refusals: losers, holderPid } = await raceForLock(dataDir, 5);
  expect(winners).toHaveLength(1);
  expect(losers).toHaveLength(4);
  for (const message of losers) expect(message).toContain(realpathSync(dataDir));
  expect(holderPid).toBe(winners[0]);
});

it("the lock of a data directory is released when its process ends, even after a kill", async () => {
  const dataDir = newDataDir();
  const first = await starter(dataDir);
  expect(await first.go()).toBe("won");
  await first.end();
  const second = acquireDataLock(dataDir);
  expect(second.ok).toBe(true);
  if (second.ok) second.value[Symbol.dispose]();
});

it("the lock of a data directory can be acquired again after release, and releasing twice is harmless", () => {
  const dataDir = newDataDir();
  for (let attempt = 0; attempt < 2; attempt++) {
    const lock = acquireDataLock(dataDir);
    if (!lock.ok) throw new Error(lock.error.message);
    expect(acquireDataLock(dataDir, 0)).toMatchObject({ ok: false, error: { holderPid: process.pid } });
    lock.value[Symbol.dispose]();
    lock.value[Symbol.dispose]();
  }
});

it("the lock of a data directory also holds for symbolic links to the directory, and makes it private to its user", () => {
  const dataDir = newDataDir();
  const lock = acquireDataLock(dataDir);
  if (!lock.ok) throw new Error(lock.error.message);
  using held = lock.value;
  expect(held.dataDir).toBe(realpathSync(dataDir));
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  symlinkSync(dataDir, `${dataDir}-alias`);
  expect(acquireDataLock(`${dataDir}-alias`, 0).ok).toBe(false);
});

it("acquiring the lock of a data directory throws if the directory cannot be created, instead of reporting it as in use", () => {
  const file = newDataDir();
  writeFileSync(file, "");
  expect(() => acquireDataLock(join(file, "data"))).toThrow("ENOTDIR");
});
