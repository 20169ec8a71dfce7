import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import { FormData, Response } from "undici";
import { describe, expect, it } from "vitest";
import { collectParts, type FormPart, splitForm } from "../../src/lib/multipart.ts";

const TYPE = "multipart/form-data; boundary=b";

/** Joins parts of headers and content with the boundary `b`. */
const form = (...parts: readonly (readonly [headers: string, content: string])[]): Buffer =>
  Buffer.from(
    `${parts.map(([headers, content]) => `--b\r\n${headers}\r\n\r\n${content}\r\n`).join("")}--b--\r\n`,
    "latin1",
  );

const named = (name: string, more = ""): string => `Content-Disposition: form-data; name="${name}"${more}`;

const partsOf = (body: Buffer, type = TYPE): readonly FormPart[] => {
  const parts = splitForm(body, type);
  if (!parts.ok) throw new Error(parts.error);
  return parts.value;
};

const errorOf = (body: Buffer, type = TYPE): string | undefined => {
  const parts = splitForm(body, type);
  return parts.ok ? undefined : parts.error;
};

describe("a form in multipart/form-data", () => {
  it("is split into fields and files", () => {
    const body = form(
      [named("a"), "1"],
      [`${named("f", '; filename="x.png"')}\r\nContent-Type: image/png`, "\x89PNG\r\n\x00\r\n-b"],
      [`content-type: text/plain; charset=UTF-8\r\ncontent-disposition: FORM-DATA; Name=a`, ""],
    );
    expect(partsOf(body)).toMatchObject([
      { name: "a", filename: undefined, contentType: undefined, isFile: false },
      { name: "f", filename: "x.png", contentType: "image/png", isFile: true },
      { name: "a", contentType: "text/plain; charset=UTF-8", isFile: false },
    ]);
    expect(partsOf(body)[1]?.bytes.toString("latin1")).toBe("\x89PNG\r\n\x00\r\n-b");
    expect(partsOf(body)[2]?.bytes.length).toBe(0);
  });

  it("may be empty, start with a line break, have an epilogue, and quote its boundary", () => {
    expect(partsOf(Buffer.from("--b--"))).toEqual([]);
    const body = Buffer.concat([Buffer.from("\r\n"), form([named("a"), "1"]), Buffer.from("epilogue")]);
    expect(partsOf(body, 'multipart/form-data; charset=utf-8; boundary="b"')).toMatchObject([{ name: "a" }]);
  });

  it.each([
    ['; filename="C:\\dir\\x.txt"', "x.txt"],
    ['; filename="../../etc/passwd"', "passwd"],
    ['; filename="a\\"b.txt"', 'a"b.txt'],
    ['; filename="a;b=c.txt"', "a;b=c.txt"],
    ['; filename="a\xe2\x80\xa8b.txt"', "a\u2028b.txt"],
    ["; filename=plain.txt", "plain.txt"],
    ["; filename=\"fallback.txt\"; filename*=UTF-8'en'na%C3%AFve%20.txt", "naïve .txt"],
    ["; filename=\"fallback.txt\"; filename*=UTF-8''%E9", "fallback.txt"],
    ["; filename=\"fallback.txt\"; filename*=koi8-r''%E9", "fallback.txt"],
    ['; filename=""', ""],
  ])("reads the file name in %s as %s", (parameter, filename) => {
    expect(partsOf(form([named("f", parameter), "x"]))).toMatchObject([{ filename, isFile: true }]);
  });

  it.each([
    ["image/png", true],
    ["application/octet-stream", true],
    ["multipart/mixed; boundary=c", true],
    ["text/html", false],
    ["application/json", false],
    ["application/vnd.api+json; v=1", false],
  ])("treats a part of type %s without a file name as a file: %s", (type, isFile) => {
    expect(partsOf(form([`${named("f")}\r\nContent-Type: ${type}`, "x"]))).toMatchObject([{ isFile }]);
  });

  it.each<[string, Buffer, RegExp, string?]>([
    ["has no boundary", form(), /no valid `boundary`/, "multipart/form-data"],
    [
      "has a boundary that is too long",
      form(),
      /no valid/,
      `multipart/form-data; boundary=${"b".repeat(201)}`,
    ],
    ["is empty", Buffer.alloc(0), /does not start with its boundary/],
    ["starts with other text", Buffer.from("x\r\n--b--"), /does not start with its boundary/],
    ["has another boundary", form([named("a"), "1"]), /does not start/, "multipart/form-data; boundary=c"],
    [
      "is cut off in its content",
      form([named("a"), "1"]).subarray(0, -10),
      /ends before its closing boundary/,
    ],
    ["is cut off in its first boundary", Buffer.from("--b\r"), /ends before/],
    [
      "has a boundary that continues",
      Buffer.from("--bc\r\n\r\n--b--"),
      /before byte 3 is not followed by a line break/,
    ],
    ["has a part without a name", form(["Content-Disposition: form-data", "1"]), /part 1 has no .*`name`/],
    ["has a part without headers", form([named("a"), "1"], ["X: y", "2"]), /part 2 has no/],
    [
      "has an attachment instead of form data",
      form(['Content-Disposition: attachment; name="a"', "1"]),
      /part 1/,
    ],
    ["has headers in another encoding", form([named("\xe9"), "1"]), /headers of part 1 are not valid UTF-8/],
    [
      "has a transfer encoding",
      form([`${named("a")}\r\nContent-Transfer-Encoding: base64`, "MQ=="]),
      /"a" has a Content-Transfer-Encoding/,
    ],
    ["has long headers", form([named("a", `; x="${"x".repeat(9_000)}"`), "1"]), /larger than 8192 bytes/],
    ["has a long name", form([named("a".repeat(1_025)), "1"]), /longer than 1024 characters/],
    ["has too many parts", form(...Array(1_001).fill([named("a"), "1"])), /more than 1000 parts/],
  ])("is rejected if it %s", (_, body, message, type) => {
    expect(errorOf(body, type)).toMatch(message);
  });

  it("collects repeated names in arrays, and decodes each field in its encoding", () => {
    const parts = partsOf(
      form(
        [named("a"), "1"],
        [named("__proto__"), "p"],
        [named("a"), "\xe9"],
        [named("f", '; filename="x"'), "2"],
      ),
    );
    const collected = collectParts(
      parts,
      () => "windows-1252",
      ({ bytes }) => bytes.length,
    );
    expect(collected.ok && Object.entries(collected.value)).toEqual([
      ["a", ["1", "é"]],
      ["__proto__", "p"],
      ["f", 1],
    ]);
    expect(collectParts(parts, () => "utf-8", String)).toEqual({
      ok: false,
      error: 'the field "a" is not valid utf-8',
    });
    expect(collectParts(parts, () => "klingon", String)).toEqual({
      ok: false,
      error: 'the charset "klingon" of the field "a" is not supported',
    });
  });

  const name = fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => text.replace(/["\r\n\\/]/g, "_"));
  const content = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc
      .array(fc.constantFrom("\r\n", "--", "b", "-", "\r", "\n", "\0"), { maxLength: 12 })
      .map((all) => Buffer.from(all.join(""))),
  );
  const part = fc.record({
    name,
    content,
    filename: fc.option(
      name.filter((text) => text !== ""),
      { nil: undefined },
    ),
  });

  it("keeps the names, types and bytes of random parts that another implementation has written", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 8 }), async (given) => {
        const data = new FormData();
        for (const { name, content, filename } of given) {
          if (filename === undefined) data.append(name, Buffer.from(content).toString("base64"));
          else data.append(name, new Blob([new Uint8Array(content)], { type: "image/png" }), filename);
        }
        const response = new Response(data);
        const type = response.headers.get("content-type") ?? "";
        const parts = partsOf(Buffer.from(await response.bytes()), type);
        expect(
          parts.map((one) => [
            one.name,
            one.filename,
            one.contentType,
            one.isFile,
            one.bytes.toString("base64"),
          ]),
        ).toEqual(
          given.map(({ name, content, filename }) => {
            const bytes = Buffer.from(content);
            return filename === undefined
              ? [
                  name.toWellFormed(),
                  undefined,
                  undefined,
                  false,
                  Buffer.from(bytes.toString("base64")).toString("base64"),
                ]
              : [name.toWellFormed(), filename.toWellFormed(), "image/png", true, bytes.toString("base64")];
          }),
        );
      }),
      { numRuns: 200 },
    );
  });

  it("with random damage is split or rejected with a message, deterministically and without an exception", () => {
    const valid = form(
      [named("a"), "1"],
      [`${named("f", '; filename="x"')}\r\nContent-Type: image/png`, "\x00\r\n--"],
      [named("b"), ""],
    );
    const damage = fc.record({
      at: fc.nat(valid.length),
      removed: fc.nat(12),
      added: fc.oneof(
        fc.uint8Array({ maxLength: 6 }),
        fc
          .constantFrom("--b", "\r\n", "\r\n\r\n", "--b--", '"', ";", "\xff")
          .map((text) => Buffer.from(text, "latin1")),
      ),
    });
    let rejected = 0;
    fc.assert(
      fc.property(fc.array(damage, { minLength: 1, maxLength: 4 }), (all) => {
        const damaged = all.reduce(
          (body, { at, removed, added }) =>
            Buffer.concat([body.subarray(0, at), added, body.subarray(at + removed)]),
          valid,
        );
        const result = splitForm(damaged, TYPE);
        expect(splitForm(Buffer.from(damaged), TYPE)).toEqual(result);
        if (result.ok) return;
        rejected++;
        expect(result.error).toMatch(/^(?:its?|the|part) /);
        expect(result.error.length).toBeLessThan(300);
      }),
      { numRuns: 2_000 },
    );
    expect(rejected).toBeGreaterThan(500);
  });

  it("is parsed by a library that is loaded only for the first form", async () => {
    const module = fileURLToPath(new URL("../../src/lib/multipart.ts", import.meta.url));
    const code = `
      const isLoaded = () => Object.keys(require.cache).some((file) => file.includes("multipart-parser"));
      import(${JSON.stringify(module)}).then(({ splitForm }) => {
        const before = isLoaded();
        splitForm(Buffer.from("--b--"), ${JSON.stringify(TYPE)});
        console.log(before, isLoaded());
      });`;
    const { stdout } = await promisify(execFile)(process.execPath, ["-e", code]);
    expect(stdout.trim()).toBe("false true");
  });
});
