import { expect } from "vitest";
import { z } from "zod";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { commonSettings } from "../../src/event/channel.ts";
import type { Values } from "../../src/event/values.ts";
import { compileRules, type RuleSet } from "../../src/normalize/compile.ts";
import { type Normalized, normalize } from "../../src/normalize/normalize.ts";
import { channel, fieldOf } from "./support.ts";

const SEED = 20_260_102;
const DELIVERIES_PER_RULE_SET = 20;

/** A linear congruential generator (Numerical Recipes): the same texts in each run. */
let state = SEED;
function below(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}
const pick = <T>(from: readonly [T, ...T[]]): T => from[below(from.length)] ?? from[0];
const some = <T>(most: number, make: (index: number) => T): T[] =>
  Array.from({ length: below(most) }, (_, i) => make(i));

const SHARED = [
  ...["$", "$.a", "$.a[0]", "$.a[-1]", "$..a", "$.*", "$[*]", "$.__proto__", "$.constructor", "$['a','b']"],
  ...[
    "$[0:5:2]",
    "$..*",
    "$body",
    "$body.a",
    "$body..b",
    "$body[*].a",
    "$.a.b.c",
    "$headers['x-a']",
    "$query.a",
  ],
] as const;
const PATHS = {
  rfc9535: [...SHARED, "$[::-1]", "$.a[?@.b>1]", "$[?match(@.a,'x.*')]", "$[?count(@.*)>1]", "$[?@==$.a]"],
  "jsonpath-plus": [...SHARED, "$..a~", "$.*~", "$.a^", "$..*^", "$..b^^", "$[*]@number()", "$.*@object()"],
} as const;

const KEYS = ["a", "b", "__proto__", "constructor", "length", "0", "", "é"] as const;
const TEXTS = ["x", "1", "", '"', "\\", "\ud800", "\n", "\u{1F600}"] as const;
const TYPES = [
  ...([
    "application/json",
    "application/x-ndjson",
    "application/xml",
    "application/x-www-form-urlencoded",
  ] as const),
  ...([
    "text/plain",
    "application/octet-stream",
    "application/json; charset=utf-16le",
    "multipart/x",
    "",
  ] as const),
] as const;

function value(depth: number): unknown {
  switch (below(depth > 4 ? 5 : 8)) {
    case 0:
      return null;
    case 1:
      return below(5);
    case 2:
      return pick(TEXTS);
    case 3:
      return true;
    case 4:
      return 1e21;
    case 5:
      return some(4, () => value(depth + 1));
    default:
      return Object.fromEntries(some(4, () => [pick(KEYS), value(depth + 1)]));
  }
}

function json(): string {
  const text = JSON.stringify(value(0), null, below(3));
  if (below(5) === 0) return text.slice(0, below(text.length));
  return below(6) === 0 ? ` ${text.replaceAll('"a"', '"\\u0061"')}\r\n` : text;
}

function xml(depth: number): string {
  const name = pick(["a", "b", "x:c", "__proto__", "constructor"]);
  const text = () => pick(["t", "&amp;", "<![CDATA[<]]>", "<!--c-->", "&bad;", " "]);
  const children = depth > 3 ? [] : some(4, () => (below(3) > 0 ? xml(depth + 1) : text()));
  return `<${name}${below(3) > 0 ? "" : ' a="&lt;"'}>${children.join("")}</${below(30) > 0 ? name : "z"}>`;
}

const form = (): string =>
  some(5, () => pick(["a", "a=1", "%zz=%", "__proto__=1", "=", "a=%ff", "+=+"])).join("&");

function bodyOf(type: string): Buffer {
  if (type.includes("xml")) return Buffer.from(xml(0));
  if (type.includes("form")) return Buffer.from(form());
  if (type.includes("ndjson")) return Buffer.from(some(4, json).join("\n"));
  const body = Buffer.from(json(), type.includes("utf-16") ? "utf16le" : "utf8");
  return below(12) === 0 ? Buffer.concat([body, Buffer.from([0xff])]) : body;
}

function rules(): RuleSet {
  const pathSyntax = pick(["rfc9535", "jsonpath-plus"] as const);
  const path = () => pick<string>(PATHS[pathSyntax]);
  const config = z.strictObject(commonSettings).parse({
    pathSyntax,
    ...(below(3) > 0 ? {} : { itemsPath: pick(["$", "$.a", "$.*", "$..a", "$body[*]"]) }),
    dedupe: { by: pick(["id", "content"]) },
    limits: { maxDepth: pick([1, 3, 128]) },
  });
  const definitions = [0, ...some(3, (i) => i + 1)].map((i) => ({
    type: `${pick(["x", "1"])}${i}`,
    ...(below(2) > 0 ? { typePath: path() } : {}),
    ...(below(2) > 0 ? { idPath: path() } : {}),
    ...(below(2) > 0 ? { payloadPath: path() } : {}),
  }));
  const compiled = compileRules({ channel, profile: webhook.profile, config, definitions });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
  return compiled.value;
}

const bare = (values: Readonly<Record<string, string>>): Values => Object.assign(Object.create(null), values);

function check(outcome: Normalized | Promise<Normalized>): void {
  if (outcome instanceof Promise || outcome.kind !== "normalized") throw new Error("not normalized");
  const { events, failures, received } = outcome;
  const items = failures.map(({ item }) => item);
  expect(new Set(items).size, "one failure per item").toBe(items.length);
  if (!items.includes(null)) {
    expect(new Set([...events, ...failures].map(({ item }) => item)).size, "no item is lost").toBe(received);
  }
  for (const event of events) {
    expect(event.fields.every((field) => field.isWellFormed())).toBe(true);
    const data = fieldOf(event, "data");
    if (data !== undefined && fieldOf(event, "datacontenttype") === "application/json") JSON.parse(data);
  }
}

/**
 * Runs random deliveries through random rule sets, twenty through each.
 *
 * @throws Error with the rules and the delivery where one makes the normalizer throw, lose an item or write text that is not well
 * formed.
 * @returns how many deliveries there were.
 */
export function normalizeRandomDeliveries(ruleSets: number): number {
  state = SEED;
  const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
  let deliveries = 0;
  for (let set = 0; set < ruleSets; set++) {
    const ruleSet = rules();
    for (let i = 0; i < DELIVERIES_PER_RULE_SET; i++) {
      const type = pick<string>(TYPES);
      const body = bodyOf(type);
      const headers = bare({ "content-type": type, "x-a": "1" });
      const delivery = { method: "POST", headers, query: bare({ a: "1" }), body, arrivedAtMs: 1 };
      try {
        check(normalize(ruleSet, delivery, deps));
      } catch (error) {
        const { config, always, groups } = ruleSet;
        const given = JSON.stringify({ type, body: body.toString(), config, always, groups });
        throw new Error(`with ${given}`, { cause: error });
      }
      deliveries++;
    }
  }
  return deliveries;
}
