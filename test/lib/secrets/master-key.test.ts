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

it("loadOrCreateMasterKey creates the key file once, and only the owner can read the file", async () => {
  const { key } = await loadOrCreateMasterKey(dir);
  expect(key).toHaveLength(32);
  expect(await loadOrCreateMasterKey(dir)).toEqual({ key, isNew: false });
  expect((await stat(join(dir, "master.key"))).mode & 0o777).toBe(0o600);
  expect(await readdir(dir)).toEqual(["master.key"]);
});

it("loadOrCreateMasterKey creates the key file even if an earlier attempt was interrupted", async () => {
  await writeFile(join(dir, "master.key.new"), "half");
  expect((await loadOrCreateMasterKey(dir)).key).toHaveLength(32);
});

it("loadOrCreateMasterKey rejects a damaged key file and does not replace the file", async () => {
  await writeFile(join(dir, "master.key"), "c2hvcnQ=\n");
  await expect(loadOrCreateMasterKey(dir)).rejects.toThrow("does not contain a master key");
  expect(await readFile(join(dir, "master.key"), "utf8")).toBe("c2hvcnQ=\n");
});

it("parseMasterKey accepts a key of 32 bytes in hex, base64 or base64url", () => {
  const key = Buffer.alloc(32, 0xfb);
  for (const encoding of ["hex", "base64", "base64url"] as const) {
    expect(parseMasterKey(key.toString(encoding))).toEqual(key);
  }
  for (const text of ["", key.toString("hex").slice(1), `${key.toString("base64")}=`, "?".repeat(43)]) {
    expect(parseMasterKey(text)).toBeUndefined();
  }
});
