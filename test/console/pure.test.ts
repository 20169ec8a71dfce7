import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { expect, it } from "vitest";
import { fillPath, formatCurl, formatQuery } from "../../src/console/api/curl.ts";
import { findChanges } from "../../src/console/kit/explained/explained-changes.ts";
import { mergePatch } from "../../src/console/kit/resource/merge-patch.ts";
import { indentJson } from "../../src/console/kit/text/indent-json.ts";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatPercent,
  formatShort,
} from "../../src/console/kit/text/numbers.ts";
import { visibleText } from "../../src/console/kit/text/visible.ts";
import { formatDeliveryCurl } from "../../src/console/views/deliveries/delivery-curl.ts";

it("visibleText escapes invisible characters and leaves visible characters unchanged", () => {
  const hidden =
    "\u0000\u0007\u001b\u007f\u00ad\u061c\u200b\u200d\u200e\u202e\u2028\u2066\u2069\ufeff\ufe0f\ud800";
  const shown = visibleText(`${hidden}\u{e0041}`);
  expect(shown).toMatch(/^[\x20-\x7e]+$/);
  expect(shown.match(/\\u/g)).toHaveLength([...hidden].length + 1);
  for (const text of ["plain\ttext\n", "Größe 漢字 עברית العربية", "🎉 naïve <b>&amp;"])
    expect(visibleText(text)).toBe(text);
});

it("indentJson only adds white space: numbers, escapes and repeated keys stay as received", () => {
  const text =
    '{"big":12345678901234567890.10,"e":1E+2,"esc":"\\u00e9\\n{[,:]}","same":1,"same":2,"none":{},"list":[ ]}';
  const indented = indentJson(text);
  expect(indented.split("\n")[1]).toBe('  "big": 12345678901234567890.10,');
  for (const part of ["1E+2", '"\\u00e9\\n{[,:]}"', '"same": 1', '"same": 2', '"none": {}', '"list": []'])
    expect(indented).toContain(part);
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      expect(JSON.parse(indentJson(text))).toEqual(JSON.parse(text));
    }),
  );
});

it("mergePatch returns a patch that turns one value into another, and an empty patch for equal values", () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
  const name = fc.constantFrom("a", "b", "c");
  const inner = fc.dictionary(name, leaf, { maxKeys: 3 });
  const value = fc.dictionary(name, fc.oneof(leaf, inner), { maxKeys: 3 });
  fc.assert(
    fc.property(value, value, (before, after) => {
      expect(applyMergePatch(before, mergePatch(before, after))).toEqual(after);
      expect(mergePatch(after, after)).toEqual({});
    }),
  );
  expect(mergePatch({ a: null, b: { c: 1, d: 2 } }, { b: { c: 1 } })).toEqual({ b: { d: null } });
});

it("formatCurl quotes any body for the shell, and writes a variable in place of the API key", () => {
  const hostile = `it's "$(touch x)" \`id\` \\ $HOME !1 \n\u00e9`;
  const call = { method: "put", path: "/apps/a%20b", body: { hostile }, headers: { "If-Match": `"v'1"` } };
  const shown = formatCurl(call, "https://inlet.example");
  expect(shown).toContain('-H "Authorization: Bearer $INLET_API_KEY"');
  const script = `curl() { for word; do printf '%s\\0' "$word"; done; }\n${shown}`;
  const { stdout } = spawnSync("/bin/sh", ["-c", script], {
    env: { INLET_API_KEY: "k e y" },
    encoding: "utf8",
  });
  expect(stdout.split("\0").slice(0, -1)).toEqual([
    ...["-sS", "-X", "PUT", "https://inlet.example/v1/apps/a%20b"],
    ...["-H", "Authorization: Bearer k e y", "-H", `If-Match: "v'1"`],
    ...["-H", "Content-Type: application/json", "-d", JSON.stringify(call.body, null, 2)],
  ]);
});

it("a delivery as a curl command sends its body, query and headers again, without those that curl sets", () => {
  const run = (shown: string) =>
    spawnSync("/bin/sh", ["-c", `curl() { for word; do printf '%s\\0' "$word"; done; cat; }\n${shown}`], {
      encoding: "latin1",
      input: "",
    }).stdout;
  const headers = { host: "a", "content-length": "4", "x-note": ["it's", "$HOME"], "x-token": "***" };
  const sent = { method: "POST", headers, query: { a: "1 2" } };
  const command = ["-sS", "-X", "POST", "https://inlet.example/hooks/1?a=1+2"];
  const noted = ["-H", "x-note: it's", "-H", "x-note: $HOME", "-H", "Content-Type:"];
  const text = formatDeliveryCurl({ ...sent, bodyBase64: btoa("@'$x\n") }, "https://inlet.example/hooks/1");
  expect(run(text).split("\0")).toEqual([...command, ...noted, "--data-raw", "@'$x\n", ""]);
  const bytes = formatDeliveryCurl({ ...sent, bodyBase64: btoa("\xff\0") }, "https://inlet.example/hooks/1");
  expect(run(bytes)).toBe(`${[...command, ...noted, "--data-binary", "@-"].join("\0")}\0\xff\0`);
});

it("a change of definitions is reported by definition and path, and equal results are not", () => {
  const found = (path: string, values: string[]) => ({ path, values, isCut: false });
  const definition = (values: string[], matches = true) => ({
    type: "order",
    matches,
    typePath: found("$.type", values),
    idPath: null,
    payloadPath: null,
    failure: null,
    ignored: null,
  });
  const explain = (...definitions: ReturnType<typeof definition>[]) => [
    { item: 0, failures: [], definitions, closest: null },
  ];
  const then = explain(definition(["order"]));
  expect(findChanges(then, explain(definition(["order"])))).toEqual([]);
  expect(findChanges(then, explain(definition([], false)))).toEqual([
    { item: 0, type: "order", part: "result", before: "matches", after: "no match" },
    { item: 0, type: "order", part: "typePath", before: "$.type → order", after: "$.type → no value" },
  ]);
  expect(findChanges(then, explain()).map(({ part, after }) => [part, after])).toContainEqual([
    "result",
    undefined,
  ]);
});

it("fillPath encodes each parameter as one path segment, and formatQuery encodes each as one value", () => {
  const segment = fillPath("/apps/{appId}/events/{topic}", { appId: "a/../b", topic: "é?#%2f" });
  expect(segment).toBe("/apps/a%2F..%2Fb/events/%C3%A9%3F%23%252f");
  expect(formatQuery({ type: "a&b=c", limit: 0, from: undefined, to: "" })).toBe("?type=a%26b%3Dc&limit=0");
  expect(formatQuery({ from: undefined })).toBe("");
  // An event can have an empty text at the path of a search.
  expect(formatQuery({ path: "$.note", value: "" })).toBe("?path=%24.note&value=");
});

it("durations and byte counts are formatted in the largest unit in which the number is at least one", () => {
  const durations = [0, 999, 1_000, 59_999, 60_000, 3_600_000, 86_400_000, 129_600_000];
  expect(durations.map(formatDuration)).toEqual([
    "0 ms",
    "999 ms",
    "1 s",
    "60 s",
    "1 min",
    "1 h",
    "1 d",
    "1.5 d",
  ]);
  expect([0, 1_023, 1_024, 1_572_864, 1024 ** 4, 1024 ** 5].map(formatBytes)).toEqual([
    "0 B",
    "1,023 B",
    "1 KiB",
    "1.5 MiB",
    "1 TiB",
    "1,024 TiB",
  ]);
  expect([9_999, 10_000, 12_345].map(formatShort)).toEqual(["9,999", "10K", "12.3K"]);
  expect([formatCount(12_345), formatPercent(0.1234)]).toEqual(["12,345", "12.3 %"]);
});

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = applyMergePatch(result[name], value);
  }
  return result;
}
