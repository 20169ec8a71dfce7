import { mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { acquireDataLock } from "../../../src/lib/servers/data-lock.ts";
import { raceForLock, starter } from "./lock-starters.ts";

const made: string[] = [];
afterEach(() => {
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true });
});

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), "inlet-lock-"));
  made.push(dir);
  return join(dir, "data");
}

// test/deep/data-lock.test.ts runs this with 20 processes.
it("gives the lock to one of five concurrent processes, and tells the others which directory is in use", async () => {
  const dataDir = folder();
  const { winners, refusals, holderPid } = await raceForLock(dataDir, 5);
  expect(winners).toHaveLength(1);
  expect(refusals).toHaveLength(4);
  for (const refusal of refusals) expect(refusal).toContain(realpathSync(dataDir));
  expect(holderPid).toBe(winners[0]);
});

it("releases the lock when its process ends, even if it is killed", async () => {
  const dataDir = folder();
  const first = await starter(dataDir);
  expect(await first.go()).toBe("won");
  await first.end();
  const second = acquireDataLock(dataDir);
  expect(second.ok).toBe(true);
  if (second.ok) second.value[Symbol.dispose]();
});

it("can be acquired again after release, and allows a second release", () => {
  const dataDir = folder();
  for (let round = 0; round < 2; round++) {
    const lock = acquireDataLock(dataDir);
    if (!lock.ok) throw new Error(lock.error.message);
    expect(acquireDataLock(dataDir, 0)).toMatchObject({ ok: false, error: { holderPid: process.pid } });
    lock.value[Symbol.dispose]();
    lock.value[Symbol.dispose]();
  }
});

it("locks a directory under all of its names, and denies access to other users", () => {
  const dataDir = folder();
  const lock = acquireDataLock(dataDir);
  if (!lock.ok) throw new Error(lock.error.message);
  using held = lock.value;
  expect(held.dataDir).toBe(realpathSync(dataDir));
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  symlinkSync(dataDir, `${dataDir}-alias`);
  expect(acquireDataLock(`${dataDir}-alias`, 0).ok).toBe(false);
});

it("throws for a directory that cannot be written, and does not report it as in use", () => {
  const file = folder();
  writeFileSync(file, "");
  expect(() => acquireDataLock(join(file, "data"))).toThrow("ENOTDIR");
});
