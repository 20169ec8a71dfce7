import { describe, expect, it } from "vitest";
import { all, byId, type Given, normalizeBody } from "./support.ts";

describe("an event's id", () => {
  const idOf = (body: unknown): string | undefined => normalizeBody(body, byId).events[0]?.id;

  it.each<[string, string, string | undefined]>([
    ["is the string under idPath", '{"id":"a b"}', "a b"],
    ["keeps the digits of a large integer", '{"id":12345678901234567890}', "12345678901234567890"],
    ["keeps the spelling 1.0", '{"id":1.0}', "1.0"],
    ["keeps the spelling 1e3", '{"id": 1e3 }', "1e3"],
    ["may be a boolean", '{"id":false}', "false"],
    ["may have 512 characters", `{"id":"${"x".repeat(512)}"}`, "x".repeat(512)],
    ["may not have 513", `{"id":"${"x".repeat(513)}"}`, undefined],
    ["may not be empty", '{"id":""}', undefined],
    ["may not be null", '{"id":null}', undefined],
    ["may not be an object", '{"id":{}}', undefined],
    ["may not be absent", "{}", undefined],
    ["may not be a lone surrogate", '{"id":"\\ud800"}', undefined],
  ])("%s", (_, body, id) => {
    expect(idOf(body)).toBe(id);
    if (id === undefined) {
      expect(normalizeBody(body, byId).failures).toMatchObject([
        { reason: "id_missing", path: "idPath", definitions: ["all"] },
      ]);
    }
  });

  it("must be one value: an idPath that yields two is refused", () => {
    const given = { definitions: [{ type: "all", idPath: "$..id" }] };
    expect(normalizeBody({ id: 1, a: { id: 2 } }, given).failures).toMatchObject([
      { reason: "id_missing", detail: "idPath $..id yields 2 values" },
    ]);
    expect(normalizeBody({ a: { id: 2 } }, given).events[0]?.id).toBe("2");
  });

  it("consists of the delivery's id and the item's place when there is no idPath", () => {
    const outcome = normalizeBody([1, 2], {
      ...all,
      config: { itemsPath: "$" },
      delivery: { deliveryId: "d" },
    });
    expect(outcome.events.map(({ id }) => id)).toEqual(["d/0", "d/1"]);
  });

  it("is new, and not used for dedupe, when the delivery has none either", () => {
    const [event] = normalizeBody({}, all).events;
    expect(event).toMatchObject({ id: "fresh_1", identity: "" });
  });
});

describe("the dedupe key of an event", () => {
  const identityOf = (body: unknown, given: Given): string | undefined =>
    normalizeBody(body, given).events[0]?.identity;

  it("depends on the id, not on the data", () => {
    const [first, second] = [identityOf({ id: "x", n: 1 }, byId), identityOf({ id: "x", n: 2 }, byId)];
    expect(first).toMatch(/^[\w-]{22}$/);
    expect(second).toBe(first);
    expect(identityOf({ id: "y" }, byId)).not.toBe(first);
  });

  it("is accompanied by a digest that differs with the data", () => {
    const digestOf = (body: string): string | undefined => normalizeBody(body, byId).events[0]?.digest;
    expect(digestOf('{"id":1}')).toMatch(/^[\w-]{11}$/);
    expect(digestOf('{"id":1}')).toBe(digestOf('{"id":1}'));
    expect(digestOf('{"id":1}')).not.toBe(digestOf('{"id": 1}'));
  });

  it("is empty when dedupe is off", () => {
    expect(identityOf({ id: "x" }, { ...byId, config: { dedupe: { windowSeconds: 0 } } })).toBe("");
  });

  it("by content is the same for the same content, and so is the id", () => {
    const given: Given = { ...all, config: { dedupe: { by: "content" } } };
    const [a, again, b] = [{ n: 1 }, { n: 1 }, { n: 2 }].map((body) => normalizeBody(body, given).events[0]);
    expect(a?.id).toMatch(/^[\w-]{22}$/);
    expect(again).toMatchObject({ id: a?.id, identity: a?.identity });
    expect(b?.id).not.toBe(a?.id);
    expect(b?.identity).not.toBe(a?.identity);
  });

  it("by content depends on the content also with an idPath", () => {
    const given: Given = { ...byId, config: { dedupe: { by: "content" } } };
    const [a, b] = [
      { id: "x", n: 1 },
      { id: "x", n: 2 },
    ].map((body) => normalizeBody(body, given).events[0]);
    expect(a?.id).toBe("x");
    expect(b?.identity).not.toBe(a?.identity);
  });

  it("with onConflict publish depends on id and content", () => {
    const given: Given = { ...byId, config: { dedupe: { onConflict: "publish" } } };
    const [a, b, again] = [1, 2, 1].map((n) => identityOf({ id: "x", n }, given));
    expect(a).not.toBe(b);
    expect(again).toBe(a);
  });
});
