import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { pack } from "tar-stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkArchive, readArchive } from "../../../src/lib/archive/read-archive.ts";
import { createArchive } from "../../../src/lib/archive/write-archive.ts";

const { signal } = new AbortController();
const dir = mkdtempSync(join(tmpdir(), "inlet-archive-"));
const file = join(dir, "whole.tar");
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const PARTS = [
  ["first", "some text"],
  ["folder/second", Array.from({ length: 20_000 }, (_, n) => `${n * 7919}`).join(" ")],
  ["empty", ""],
] as const;
const toStream = (content: string) => Readable.from([Buffer.from(content)]);

beforeAll(async () => {
  await using archive = await createArchive(file, { signal });
  for (const [name, content] of PARTS) await archive.add(name, toStream(content));
  expect(readdirSync(dir)).toEqual([expect.stringMatching(/^whole\.tar\.partial-[\da-f-]+$/)]);
  expect(await archive.finish({ about: "it" })).toBe(statSync(file).size);
});

async function check(bytes: Uint8Array): Promise<string> {
  const other = join(dir, "other.tar");
  writeFileSync(other, bytes);
  return checkArchive(other, { signal }).then(
    () => "whole",
    (error: Error) => `${error.name}: ${error.message}`,
  );
}

describe("a backup archive", () => {
  it("returns the same manifest and parts that were written, and only its owner can read the file", async () => {
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const manifest = await checkArchive(file, { signal });
    expect(manifest.about).toBe("it");
    expect(manifest.parts.map(({ name }) => name)).toEqual(PARTS.map(([name]) => name));
    const found: (readonly string[])[] = [];
    for await (const { name, content } of readArchive(file, { signal, isWanted: (name) => name !== "first" }))
      found.push([name, await text(content)]);
    expect(found).toEqual(PARTS.slice(1));
  });

  it("is rejected if a byte was modified, with the name of the modified part", async () => {
    const whole = readFileSync(file);
    const flipBit = (at: number) => whole.map((byte, index) => (index === at ? byte ^ 1 : byte));
    // Bytes after the header of the first part, and in the middle of the second.
    expect(await check(flipBit(512 + 12))).toBe(
      "ArchiveError: the part first was modified (its SHA-256 or size does not match)",
    );
    expect(await check(flipBit(whole.length / 2))).toContain("the part folder/second was modified");
    const manifest = whole.indexOf('"about": "it"');
    expect(await check(flipBit(manifest + 10))).toContain("manifest.json was modified");
    expect(await check(Buffer.from("nothing of the kind".repeat(100)))).toContain("is not a tar file");
  });

  it("is rejected as incomplete, wherever it is truncated", async () => {
    const whole = readFileSync(file);
    // A tar ends with at least two blocks of zeros, which carry no information.
    const end = whole.indexOf("manifest.json.sha256") + 1024;
    const cuts = Array.from({ length: 60 }, (_, n) => Math.floor((n * end) / 60));
    for (const cut of [...cuts, 512, 1024, end - 512, end - 1])
      expect(await check(whole.subarray(0, cut)), `cut at ${cut}`).toMatch(/^ArchiveError: /);
    expect(await check(whole)).toBe("whole");
  });

  it("fails instead of replacing an existing file, and removes its temporary files", async () => {
    const other = join(dir, "taken.tar");
    {
      await using archive = await createArchive(other, { signal });
      writeFileSync(other, "another's");
      await expect(archive.finish({})).rejects.toMatchObject({ code: "EEXIST" });
    }
    expect(readFileSync(other, "utf8")).toBe("another's");
    expect(readdirSync(dir).filter((name) => name.includes("partial"))).toEqual([]);
  });

  it.each([
    "null",
    "{",
    "{}",
    '{"parts":{}}',
    '{"parts":[null]}',
  ])("rejects an invalid table of contents: %s", async (contents) => {
    const tar = pack();
    tar.entry({ name: "manifest.json" }, contents);
    const digest = createHash("sha256").update(contents).digest("hex");
    tar.entry({ name: "manifest.json.sha256" }, `${digest}  manifest.json\n`);
    tar.finalize();
    expect(await check(await buffer(tar as unknown as Readable))).toBe(
      "ArchiveError: manifest.json is not a valid table of contents",
    );
  });

  it("removes its temporary files if writing is not finished", async () => {
    const before = readdirSync(dir);
    {
      await using archive = await createArchive(join(dir, "given-up.tar"), { signal });
      await archive.add("first", toStream("some text"));
      const broken = Readable.from(
        (function* () {
          yield Buffer.from("begins");
          throw new Error("its source is gone");
        })(),
      );
      await expect(archive.add("second", broken)).rejects.toThrow("its source is gone");
    }
    expect(readdirSync(dir)).toEqual(before);
  });
});
