import { describe, expect, it } from "vitest";
import { z } from "zod";
import { polledItemFields, pollingProfile } from "../../src/channels/polling/profile.ts";
import { commonFields } from "../../src/event/channel.ts";
import type { Definition } from "../../src/event/definition.ts";
import { normalize, type Selection } from "../../src/normalize/normalize.ts";
import { compileRules } from "../../src/normalize/rule-set.ts";
import { channel, dataOf, deliveryOf, type Outcome } from "./support.ts";

const settings = z.strictObject({ ...commonFields, ...polledItemFields });

function compile(config: z.input<typeof settings>, definition: Partial<Definition> = {}) {
  const source = { channel: { ...channel, kind: "polling" }, config: settings.parse(config) };
  return compileRules({ ...source, profile: pollingProfile, definitions: [{ type: "row", ...definition }] });
}

function run(
  body: unknown,
  config: z.input<typeof settings>,
  definition?: Partial<Definition>,
  only?: Selection,
): Outcome {
  const rules = compile(config, definition);
  if (!rules.ok) throw new Error(JSON.stringify(rules.error));
  const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
  const outcome = normalize(rules.value, deliveryOf(body), deps, only);
  if (outcome instanceof Promise || outcome.kind !== "normalized") throw new Error(JSON.stringify(outcome));
  return outcome;
}

const listIds = ({ events }: Outcome): string[] => events.map(({ id }) => id);

describe("a page of items that a polling source received", () => {
  it("skips null elements (items seen before), but counts them in the positions of new items", () => {
    const body = '{"rows": [null, {"id":1.0}, null, {"id":2}, null]}';
    const outcome = run(body, { itemsPath: "$.rows", itemId: "$.id" });
    expect(outcome.received).toBe(2);
    expect(outcome.events.map(({ item, id }) => [item, id])).toEqual([
      [1, "1.0"],
      [3, "2"],
    ]);
  });

  it("yields its events oldest first if the page is in descending order", () => {
    const config = { itemsPath: "$[*]", itemId: "$.id", order: "descending" } as const;
    expect(listIds(run('[{"id":3},{"id":2},null,{"id":1}]', config))).toEqual(["1", "2", "3"]);
  });

  it("can be redriven one item at a time by the position in the quarantined failure", () => {
    const only = { id: "q", item: 2, definitions: [], asNewId: false };
    const outcome = run('[{"id":3},null,{"id":1}]', { itemsPath: "$", itemId: "$.id" }, {}, only);
    expect(listIds(outcome)).toEqual(["1"]);
  });

  it("can contain 20,000 old items in addition to one new item", () => {
    const rows = [...Array.from({ length: 20_000 }, () => null), { id: 7 }];
    expect(listIds(run(rows, { itemsPath: "$", itemId: "$.id" }))).toEqual(["7"]);
  });

  it("is available to the paths of its items as $body", () => {
    const payload = { payloadPath: "$body.account" };
    const outcome = run('{"account": 12345678901234567890, "rows": [{}]}', { itemsPath: "$.rows" }, payload);
    expect(dataOf(outcome)).toEqual(["12345678901234567890"]);
  });

  it("is a single item if the whole page is null", () => {
    expect(dataOf(run("null", {}))).toEqual(["null"]);
  });
});

describe("the id of a polled item", () => {
  const config = { itemId: "$.id", versionPath: "$.v" };

  it("ends with the item's version, even if idPath supplies the id", () => {
    expect(listIds(run({ id: 1, v: "a" }, config))).toEqual(["1/a"]);
    expect(listIds(run({ id: 1, v: 2, key: "k" }, config, { idPath: "$.key" }))).toEqual(["k/2"]);
    expect(listIds(run({ id: 1 }, config))).toEqual(["1"]);
  });

  it("has a different dedupe key from another id and version that concatenate to the same text", () => {
    const one = run({ id: "1", v: "2/3" }, config).events[0]?.identity;
    const other = run({ id: "1/2", v: "3" }, config).events[0]?.identity;
    const plain = run({ id: "1/2/3" }, config).events[0]?.identity;
    expect(new Set([one, other, plain]).size).toBe(3);
  });

  it("is reported as id_missing if its path selects no value", () => {
    expect(run({ key: 1 }, config).failures).toMatchObject([{ reason: "id_missing" }]);
  });

  it("is rejected with the name of the setting if its path does not compile", () => {
    const result = compile({ itemId: "$.", versionPath: "id" });
    expect(result.ok ? [] : result.error.map(({ path }) => path)).toEqual([
      "config.itemId",
      "config.versionPath",
    ]);
  });
});
