import { expect } from "vitest";
import { z } from "zod";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { commonFields } from "../../src/event/channel.ts";
import type { Values } from "../../src/event/values.ts";
import { type Normalized, normalize } from "../../src/normalize/normalize.ts";
import { compileRules, type RuleSet } from "../../src/normalize/rule-set.ts";
import { channel, fieldOf } from "./support.ts";

const SEED = 20_260_102;
const DELIVERIES_PER_RULE_SET = 20;

/** State of a linear congruential generator (Numerical Recipes). The fixed seed makes each run use the same texts. */
let state = SEED;
function randomBelow(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}
const pick = <T>(from: readonly [T, ...T[]]): T => from[randomBelow(from.length)] ?? from[0];
const randomList = <T>(limit: number, make: (index: number) => T): T[] =>
  Array.from({ length: randomBelow(limit) }, (_, i) => make(i));

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
    "multipart/form-data; boundary=x",
    "",
  ] as const),
] as const;

function randomValue(depth: number): unknown {
  switch (randomBelow(depth > 4 ? 5 : 8)) {
    case 0:
      return null;
    case 1:
      return randomBelow(5);
    case 2:
      return pick(TEXTS);
    case 3:
      return true;
    case 4:
      return 1e21;
    case 5:
      return randomList(4, () => randomValue(depth + 1));
    default:
      return Object.fromEntries(randomList(4, () => [pick(KEYS), randomValue(depth + 1)]));
  }
}

function randomJson(): string {
  const text = JSON.stringify(randomValue(0), null, randomBelow(3));
  if (randomBelow(5) === 0) return text.slice(0, randomBelow(text.length));
  return randomBelow(6) === 0 ? ` ${text.replaceAll('"a"', '"\\u0061"')}\r\n` : text;
}

function randomXml(depth: number): string {
  const name = pick(["a", "b", "x:c", "__proto__", "constructor"]);
  const text = () => pick(["t", "&amp;", "<![CDATA[<]]>", "<!--c-->", "&bad;", " "]);
  const children = depth > 3 ? [] : randomList(4, () => (randomBelow(3) > 0 ? randomXml(depth + 1) : text()));
  return `<${name}${randomBelow(3) > 0 ? "" : ' a="&lt;"'}>${children.join("")}</${randomBelow(30) > 0 ? name : "z"}>`;
}

const randomForm = (): string =>
  randomList(5, () => pick(["a", "a=1", "%zz=%", "__proto__=1", "=", "a=%ff", "+=+"])).join("&");

function randomBody(type: string): Buffer {
  if (type.includes("xml")) return Buffer.from(randomXml(0));
  if (type.includes("form")) return Buffer.from(randomForm());
  if (type.includes("ndjson")) return Buffer.from(randomList(4, randomJson).join("\n"));
  const body = Buffer.from(randomJson(), type.includes("utf-16") ? "utf16le" : "utf8");
  return randomBelow(12) === 0 ? Buffer.concat([body, Buffer.from([0xff])]) : body;
}

function randomRules(): RuleSet {
  const pathSyntax = pick(["rfc9535", "jsonpath-plus"] as const);
  const path = () => pick<string>(PATHS[pathSyntax]);
  const config = z.strictObject(commonFields).parse({
    pathSyntax,
    ...(randomBelow(3) > 0 ? {} : { itemsPath: pick(["$", "$.a", "$.*", "$..a", "$body[*]"]) }),
    dedupe: { by: pick(["id", "content"]) },
    limits: { maxDepth: pick([1, 3, 128]) },
  });
  const definitions = [0, ...randomList(3, (i) => i + 1)].map((i) => ({
    type: `${pick(["x", "1"])}${i}`,
    ...(randomBelow(2) > 0 ? { typePath: path() } : {}),
    ...(randomBelow(2) > 0 ? { idPath: path() } : {}),
    ...(randomBelow(2) > 0 ? { payloadPath: path() } : {}),
  }));
  const compiled = compileRules({ channel, profile: webhook.profile, config, definitions });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
  return compiled.value;
}

const withoutPrototype = (values: Readonly<Record<string, string>>): Values =>
  Object.assign(Object.create(null), values);

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
 * Normalizes random deliveries with random rule sets, twenty deliveries for each rule set.
 *
 * @throws Error if the normalizer throws, loses an item or returns malformed text; the message contains rules and delivery
 * @returns the number of deliveries
 */
export function normalizeRandomDeliveries(ruleSets: number): number {
  state = SEED;
  const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
  let deliveries = 0;
  for (let set = 0; set < ruleSets; set++) {
    const ruleSet = randomRules();
    for (let i = 0; i < DELIVERIES_PER_RULE_SET; i++) {
      const type = pick<string>(TYPES);
      const body = randomBody(type);
      const headers = withoutPrototype({ "content-type": type, "x-a": "1" });
      const delivery = { method: "POST", headers, query: withoutPrototype({ a: "1" }), body, arrivedAtMs: 1 };
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
