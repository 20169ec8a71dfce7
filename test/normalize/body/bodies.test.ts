import { describe, expect, it } from "vitest";
import { parseBodyFormat, readBody } from "../../../src/normalize/body/bodies.ts";
import { itDeep } from "../../support/deep-run.ts";
import { runToEnd } from "../../support/run-to-end.ts";

function read(body: Buffer | string, contentType?: string) {
  return readBody(Buffer.from(body), contentType);
}

function readValue(body: Buffer | string, contentType?: string): unknown {
  const result = read(body, contentType);
  if (!result.ok) throw new Error(result.error.detail);
  return result.value.value;
}

describe("the body format of a delivery", () => {
  it.each([
    [undefined, "json"],
    ["", "json"],
    ["application/json", "json"],
    ["Application/JSON; charset=UTF-8", "json"],
    ["application/vnd.api+json", "json"],
    ["application/x-www-form-urlencoded", "form"],
    ["application/xml", "xml"],
    ["text/xml;charset=utf-8", "xml"],
    ["application/soap+xml", "xml"],
    ["application/x-ndjson", "ndjson"],
    ["application/ndjson", "ndjson"],
    ["application/jsonl", "ndjson"],
    ["application/x-jsonlines", "ndjson"],
    ["application/jsonlines", "ndjson"],
    ["application/x-jsonl", "ndjson"],
    ["application/json-lines", "ndjson"],
    ["text/x-ndjson", "ndjson"],
    ["Text/JSONL; charset=utf-8", "ndjson"],
    ["application/x-ldjson", "ndjson"],
    ["application/stream+json", "ndjson"],
    ["application/json-seq", "ndjson"],
    ["application/geo+json-seq", "ndjson"],
    ["text/plain", "text"],
    ["text/csv; header=present", "text"],
    ["application/octet-stream", "bytes"],
    ["image/png", "bytes"],
    ["garbage", "bytes"],
    ["multipart/form-data; boundary=x", "multipart"],
  ])("is derived from the content type: %s means %s", (contentType, kind) => {
    expect(parseBodyFormat(contentType)?.kind).toBe(kind);
  });

  it.each([
    "multipart/related; boundary=x",
    "Multipart/Mixed",
  ])("is undefined if the content type is unsupported: %s", (contentType) => {
    expect(parseBodyFormat(contentType)).toBeUndefined();
  });

  it.each([
    "text/plain; charset=ISO-8859-1",
    'text/plain; a=b; Charset="iso-8859-1"',
  ])("includes the charset of the content type %s", (type) => {
    expect(parseBodyFormat(type)).toEqual({ kind: "text", charset: "iso-8859-1" });
  });
});

describe("a JSON body", () => {
  it("is read without its byte order mark", () => {
    const result = read(Buffer.from('\uFEFF{"a":"é"}'));
    expect(result).toMatchObject({
      ok: true,
      value: { text: '{"a":"é"}', value: { a: "é" }, isVerbatim: false },
    });
  });

  it("is decoded with the charset of its content type", () => {
    expect(readValue(Buffer.from('{"a":"é"}', "latin1"), "application/json; charset=iso-8859-1")).toEqual({
      a: "é",
    });
    expect(readValue(Buffer.from('{"a":"é"}', "utf16le"), "application/json; charset=utf-16le")).toEqual({
      a: "é",
    });
  });

  it.each<[string, Buffer, string | undefined]>([
    ["is truncated", Buffer.from('{"a":'), undefined],
    ["is not UTF-8", Buffer.from('{"a":"\xE9"}', "latin1"), undefined],
    ["contains an overlong sequence", Buffer.from([0x22, 0xc0, 0xaf, 0x22]), undefined],
    ["is in an unknown charset", Buffer.from("{}"), "application/json; charset=klingon"],
    [
      "is not in the charset that it declares",
      Buffer.from([0x22, 0xff, 0x22]),
      "application/json; charset=shift_jis",
    ],
    ["has two values", Buffer.from("{}{}"), undefined],
  ])("is rejected if it %s", (_, body, contentType) => {
    expect(read(body, contentType).ok).toBe(false);
  });

  it("is parsed even if it has 200,000 nested levels", () => {
    const levels = 200_000;
    expect(read("[".repeat(levels) + "]".repeat(levels)).ok).toBe(true);
  });
});

describe("a form body", () => {
  it("is parsed into an object of strings, with arrays for repeated names", () => {
    expect(readValue("a=1&b=x+y&a=2&c=%C3%A9&d", "application/x-www-form-urlencoded")).toEqual({
      a: ["1", "2"],
      b: "x y",
      c: "é",
      d: "",
    });
  });

  it("treats __proto__, constructor and brackets as plain names", () => {
    const value = readValue("__proto__=1&a[b]=2&constructor=3", "application/x-www-form-urlencoded");
    expect(JSON.stringify(value)).toBe('{"__proto__":"1","a[b]":"2","constructor":"3"}');
    expect(Object.getPrototypeOf({})).not.toHaveProperty("a");
  });

  it.each([
    "",
    "&&",
    "=",
    "a",
    "=b",
    "a==b",
    "a+b=c%20d",
    "%zz=%",
    "ü=%C3%BC",
    "%zzü=%e",
    "%2B+%26=%3D",
    "a=1&&a=",
  ])("is parsed like URLSearchParams would parse it: %j", (text) => {
    const expected: Record<string, unknown> = {};
    for (const [name] of new URLSearchParams(text)) {
      const values = new URLSearchParams(text).getAll(name);
      expected[name] = values.length > 1 ? values : values[0];
    }
    expect({ ...(readValue(text, "application/x-www-form-urlencoded") as object) }).toEqual(expected);
  });

  itDeep("is parsed in linear time if half a million fields have the same name", () => {
    const value = runToEnd(() => readValue("a&".repeat(500_000), "application/x-www-form-urlencoded"));
    expect(value).toMatchObject({ a: { length: 500_000 } });
  });
});

describe("an XML body", () => {
  const readXml = (body: string): unknown => readValue(body, "application/xml");

  it.each<[string, string, unknown]>([
    ["converts an element with text to a string", "<a>1.0</a>", { a: "1.0" }],
    ["converts an empty element to an empty string", "<a><b/><c></c></a>", { a: { b: "", c: "" } }],
    ["converts elements with the same name to an array", "<a><b>1</b><b>2</b></a>", { a: { b: ["1", "2"] } }],
    [
      "prefixes attributes with @",
      '<a id="7"><b x="y">z</b></a>',
      { a: { "@id": "7", b: { "@x": "y", "#text": "z" } } },
    ],
    ["puts text between elements into #text", "<a>x<b/>y</a>", { a: { b: "", "#text": "xy" } }],
    ["keeps CDATA as text", "<a><![CDATA[<b> & &amp;]]></a>", { a: "<b> & &amp;" }],
    ["decodes entity and character references", "<a>&lt;&amp;&#65;&#x1F600;&quot;</a>", { a: '<&A😀"' }],
    [
      "keeps namespace prefixes",
      '<s:a xmlns:s="urn:x"><s:b/></s:a>',
      { "s:a": { "@xmlns:s": "urn:x", "s:b": "" } },
    ],
    [
      "drops comments, the XML declaration and processing instructions",
      '<?xml version="1.0"?><!-- x --><?p i?><a>1</a>',
      { a: "1" },
    ],
    [
      "keeps booleans and numbers as strings",
      "<a><b>true</b><c>0x1F</c><d> 007 </d></a>",
      { a: { b: "true", c: "0x1F", d: "007" } },
    ],
    [
      "treats names such as toString as plain names",
      "<toString><valueOf>1</valueOf></toString>",
      { toString: { valueOf: "1" } },
    ],
  ])("%s", (_, text, expected) => {
    expect(readXml(text)).toEqual(expected);
  });

  it.each([
    "no xml",
    "<a>",
    "<a></b>",
    "<a><b></a></b>",
    "<a/><b/>",
    '<a x="1" x="2"/>',
    "<a x=1/>",
    "<a>&undeclared;</a>",
    "<a>&#0;</a>",
    "<a>&#xD800;</a>",
    "<!DOCTYPE a><a/>",
    '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    '<?xml version="1.0"?><!-- c --><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>',
    "<__proto__>1</__proto__>",
    "<constructor><prototype>1</prototype></constructor>",
  ])("is rejected if it is invalid or unsafe: %j", (text) => {
    expect(read(text, "application/xml").ok).toBe(false);
  });

  it.each<[string, string, string]>([
    ["tags", `<a>${"<b/>".repeat(100_000)}</a>`, "has more than 100000 tags"],
    ["attributes", `<a>${'<b c = "1"/>'.repeat(50_001)}</a>`, "has more than 50000 attributes"],
  ])("is rejected before it is parsed if it has too many %s", (_, text, detail) => {
    const rejected = read(text, "application/xml");
    expect(rejected).toMatchObject({ ok: false, error: { detail: expect.stringContaining(detail) } });
  });

  it("is rejected if its size exceeds 1 MiB", () => {
    const filled = (characters: number): string => `<a>${"x".repeat(characters - 7)}</a>`;
    expect(read(filled(1024 * 1024), "application/xml").ok).toBe(true);
    const rejected = read(filled(1024 * 1024 + 1), "application/xml");
    expect(rejected).toMatchObject({ ok: false, error: { reason: "invalid_body" } });
  });

  it.each<[string, Buffer, string]>([
    [
      "utf-16 is declared, but the bytes are UTF-8",
      Buffer.from(`<?xml version="1.0" encoding="utf-16"?><a>é</a>`),
      "text/xml",
    ],
    ["utf-16 is the charset of the type", Buffer.from("<a>é</a>"), "text/xml; charset=utf-16"],
    [
      "an unknown charset is declared",
      Buffer.from(`<?xml version="1.0" encoding="unicode-1"?><a>é</a>`),
      "text/xml",
    ],
    [
      "only the declaration fits",
      Buffer.from(`<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>`, "latin1"),
      "text/xml; charset=utf-8",
    ],
    ["a byte order mark contradicts the type", Buffer.from("\uFEFF<a>é</a>"), "text/xml; charset=iso-8859-1"],
    [
      "UTF-16 has no byte order mark",
      Buffer.from(`<?xml version="1.0" encoding="utf-16"?><a>é</a>`, "utf16le"),
      "text/xml",
    ],
  ])("is decoded if %s", (_, bytes, type) => {
    expect(readValue(bytes, type)).toEqual({ a: "é" });
  });

  it("is rejected if no declared charset fits", () => {
    const latin = Buffer.from(`<?xml version="1.0" encoding="utf-8"?><a>é</a>`, "latin1");
    expect(read(latin, "text/xml")).toMatchObject({ error: { detail: "the body is not valid UTF-8" } });
    const unknown = Buffer.from(`<?xml version="1.0" encoding="klingon"?><a>é</a>`, "latin1");
    expect(read(unknown, "text/xml")).toMatchObject({
      error: { detail: 'the charset "klingon" is not supported' },
    });
  });

  it("is decoded with the charset of its byte order mark, content type or XML declaration", () => {
    const declared = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>';
    expect(readValue(Buffer.from(declared, "latin1"), "text/xml")).toEqual({ a: "é" });
    expect(readValue(Buffer.from("<a>é</a>", "latin1"), "text/xml; charset=iso-8859-1")).toEqual({ a: "é" });
    expect(readValue(Buffer.from("\uFEFF<a>é</a>", "utf16le"), "text/xml")).toEqual({ a: "é" });
    expect(readValue(Buffer.from("\uFEFF<a>é</a>"), "text/xml")).toEqual({ a: "é" });
  });

  // Documents of the maximum length, for which a parser with quadratic time would exceed the timeout. test/deep/xml.test.ts runs more of
  // them.
  it.each([
    ["comments", `${"<!-- x -->".repeat(104_000)}<a/>`, true],
    ["blanks in a tag", `<a${" ".repeat(1_048_000)}/>`, true],
    ["unclosed elements", "<a>".repeat(340_000), false],
  ])("is processed in linear time if it consists of 1 MiB of %s", (_, text, isDocument) => {
    expect(runToEnd(() => read(text, "application/xml")).ok).toBe(isDocument);
  });
});

describe("the error detail of an invalid body", () => {
  it.each([
    ["unclosed elements", "<a>".repeat(10_000), "application/xml"],
    ["a closing tag with a long name", `<a></${"x".repeat(100_000)}>`, "application/xml"],
    ["a charset with a long name", "{}", `application/json; charset=${"x".repeat(10_000)}`],
  ])("has a limited length for %s", (_, body, contentType) => {
    const rejected = read(body, contentType);
    expect(rejected.ok ? "" : rejected.error.detail).toMatch(/^.{20,501}$/s);
  });
});

describe("a text body", () => {
  it("is rejected if its bytes are invalid in its charset", () => {
    expect(readValue("héllo", "text/plain")).toBe("héllo");
    expect(read(Buffer.from("h\xE9llo", "latin1"), "text/plain").ok).toBe(false);
  });

  it("is decoded to UTF-8, and the charset of its content type is changed to utf-8", () => {
    const result = read(Buffer.from("h\xE9llo", "latin1"), "text/plain; charset=iso-8859-1; format=flowed");
    expect(result).toMatchObject({
      ok: true,
      value: { text: "héllo", contentType: "text/plain; charset=utf-8; format=flowed" },
    });
  });
});

describe("a binary body", () => {
  it("is stored byte for byte, without decoding", () => {
    expect(read(Buffer.from([0, 255, 128]), "application/octet-stream")).toMatchObject({
      ok: true,
      value: { kind: "bytes", text: undefined, value: undefined, contentType: "application/octet-stream" },
    });
  });
});
