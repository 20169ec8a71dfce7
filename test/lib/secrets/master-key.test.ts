import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { loadOrCreateMasterKey, parseMasterKey } from "../../../src/lib/secrets/master-key.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "inlet-key-"));
});
afterEach(() => rm(dir, { recursive: true }));

it("the master key is made once, readable by its owner only, and kept", async () => {
  const { key } = await loadOrCreateMasterKey(dir);
  expect(key).toHaveLength(32);
  expect(await loadOrCreateMasterKey(dir)).toEqual({ key, isNew: false });
  expect((await stat(join(dir, "master.key"))).mode & 0o777).toBe(0o600);
  expect(await readdir(dir)).toEqual(["master.key"]);
});

it("the master key is made although an earlier attempt was cut off", async () => {
  await writeFile(join(dir, "master.key.new"), "half");
  expect((await loadOrCreateMasterKey(dir)).key).toHaveLength(32);
});

it("a damaged key file is refused, and not replaced by another key", async () => {
  await writeFile(join(dir, "master.key"), "c2hvcnQ=\n");
  await expect(loadOrCreateMasterKey(dir)).rejects.toThrow("does not contain a master key");
  expect(await readFile(join(dir, "master.key"), "utf8")).toBe("c2hvcnQ=\n");
});

it("a key is read in hex, base64 and base64url, and only at its full length", () => {
  const key = Buffer.alloc(32, 0xfb);
  for (const encoding of ["hex", "base64", "base64url"] as const) {
    expect(parseMasterKey(key.toString(encoding))).toEqual(key);
  }
  for (const text of ["", key.toString("hex").slice(1), `${key.toString("base64")}=`, "?".repeat(43)]) {
    expect(parseMasterKey(text)).toBeUndefined();
  }
});
