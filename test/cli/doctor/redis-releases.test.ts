import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseInfo } from "../../../src/bus/connection/node-facts.ts";
import { findPatchedRelease, PATCHED_RELEASES, readRelease } from "../../../src/cli/doctor/redis-releases.ts";

const patchedFor = (name: "Redis" | "Valkey", version: string) => findPatchedRelease({ name, version });

it("a release without security fixes should be replaced by the first fixed one of its line, or of the next line that has one", () => {
  expect(patchedFor("Redis", "7.2.14")).toBe("7.2.15");
  expect(patchedFor("Redis", "7.0.15")).toBe("7.2.15");
  expect(patchedFor("Redis", "8.0.9")).toBe("8.2.8");
  expect(patchedFor("Valkey", "8.1.8")).toBe("8.1.9");
});

it("a release with all known security fixes, or of a newer line, needs no other", () => {
  for (const name of ["Redis", "Valkey"] as const)
    for (const version of PATCHED_RELEASES[name])
      expect([version, patchedFor(name, version)]).toEqual([version, undefined]);
  expect([
    patchedFor("Redis", "7.4.11"),
    patchedFor("Redis", "8.12.0"),
    patchedFor("Valkey", "9.2.0"),
  ]).toEqual([undefined, undefined, undefined]);
});

it("Valkey is recognized although it reports a version of Redis", () => {
  const info = parseInfo("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.9\r\n");
  expect(readRelease(info)).toEqual({ name: "Valkey", version: "8.1.9" });
  expect(readRelease(parseInfo("redis_version:7.4.10\r\n"))).toEqual({ name: "Redis", version: "7.4.10" });
});

it("the fixed releases are those of the documentation", () => {
  const page = readFileSync(new URL("../../../src/docs/operating.md", import.meta.url), "utf8");
  for (const [name, releases] of Object.entries(PATCHED_RELEASES))
    expect(page).toContain(`| ${name} | ${releases.join(", ")} |`);
});
