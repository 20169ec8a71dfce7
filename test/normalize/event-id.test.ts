import { describe, expect, it } from "vitest";
import { all, byId, type Given, normalizeBody } from "./support.ts";

describe("an event's id", () => {
  const idOf = (body: unknown): string | undefined => normalizeBody(body, byId).events[0]?.id;

  it.each<[string, string, string | undefined]>([
    ["is the string at idPath", '{"id":"a b"}', "a b"],
    ["keeps the digits of a large integer", '{"id":12345678901234567890}', "12345678901234567890"],
    ["is 1.0 if the body contains the number 1.0", '{"id":1.0}', "1.0"],
    ["is 1e3 if the body contains the number 1e3", '{"id": 1e3 }', "1e3"],
    ["can be a boolean", '{"id":false}', "false"],
    ["can have 512 characters", `{"id":"${"x".repeat(512)}"}`, "x".repeat(512)],
    ["cannot have 513 characters", `{"id":"${"x".repeat(513)}"}`, undefined],
    ["cannot be empty", '{"id":""}', undefined],
    ["cannot be null", '{"id":null}', undefined],
    ["cannot be an object", '{"id":{}}', undefined],
    ["cannot be missing", "{}", undefined],
    ["cannot be a lone surrogate", '{"id":"\\ud800"}', undefined],
  ])("%s", (_, body, id) => {
    expect(idOf(body)).toBe(id);
    if (id === undefined) {
      expect(normalizeBody(body, byId).failures).toMatchObject([
        { reason: "id_missing", path: "idPath", definitions: ["all"] },
      ]);
    }
  });

  it("is missing if idPath selects two values, and the item then fails as id_missing", () => {
    const options = { definitions: [{ type: "all", idPath: "$..id" }] };
    expect(normalizeBody({ id: 1, a: { id: 2 } }, options).failures).toMatchObject([
      { reason: "id_missing", detail: "idPath $..id yields 2 values" },
    ]);
    expect(normalizeBody({ a: { id: 2 } }, options).events[0]?.id).toBe("2");
  });

  it("consists of the delivery id and the item's position if the definition has no idPath", () => {
    const outcome = normalizeBody([1, 2], {
      ...all,
      config: { itemsPath: "$" },
      delivery: { deliveryId: "d" },
    });
    expect(outcome.events.map(({ id }) => id)).toEqual(["d/0", "d/1"]);
  });

  it("is random and disables dedupe if neither an idPath nor a delivery id exists", () => {
    const [event] = normalizeBody({}, all).events;
    expect(event).toMatchObject({ id: "fresh_1", identity: "" });
  });
});

describe("the dedupe key of an event", () => {
  const identityOf = (body: unknown, options: Given): string | undefined =>
    normalizeBody(body, options).events[0]?.identity;

  it("depends on the event's id but not on its data", () => {
    const [first, second] = [identityOf({ id: "x", n: 1 }, byId), identityOf({ id: "x", n: 2 }, byId)];
    expect(first).toMatch(/^[\w-]{22}$/);
    expect(second).toBe(first);
    expect(identityOf({ id: "y" }, byId)).not.toBe(first);
  });

  it("is stored with a digest of the data that depends on every byte", () => {
    const digestOf = (body: string): string | undefined => normalizeBody(body, byId).events[0]?.digest;
    expect(digestOf('{"id":1}')).toMatch(/^[\w-]{11}$/);
    expect(digestOf('{"id":1}')).toBe(digestOf('{"id":1}'));
    expect(digestOf('{"id":1}')).not.toBe(digestOf('{"id": 1}'));
  });

  it("is empty if dedupe is disabled", () => {
    expect(identityOf({ id: "x" }, { ...byId, config: { dedupe: { windowSeconds: 0 } } })).toBe("");
  });

  it("is the same for equal content if dedupe is by content, and so is the event id", () => {
    const options: Given = { ...all, config: { dedupe: { by: "content" } } };
    const [a, again, b] = [{ n: 1 }, { n: 1 }, { n: 2 }].map(
      (body) => normalizeBody(body, options).events[0],
    );
    expect(a?.id).toMatch(/^[\w-]{22}$/);
    expect(again).toMatchObject({ id: a?.id, identity: a?.identity });
    expect(b?.id).not.toBe(a?.id);
    expect(b?.identity).not.toBe(a?.identity);
  });

  it("depends on the content if dedupe is by content, even if the definition has an idPath", () => {
    const options: Given = { ...byId, config: { dedupe: { by: "content" } } };
    const [a, b] = [
      { id: "x", n: 1 },
      { id: "x", n: 2 },
    ].map((body) => normalizeBody(body, options).events[0]);
    expect(a?.id).toBe("x");
    expect(b?.identity).not.toBe(a?.identity);
  });

  it("depends on the id and the content if onConflict is publish", () => {
    const options: Given = { ...byId, config: { dedupe: { onConflict: "publish" } } };
    const [a, b, again] = [1, 2, 1].map((n) => identityOf({ id: "x", n }, options));
    expect(a).not.toBe(b);
    expect(again).toBe(a);
  });
});

describe("an id that no CloudEvent may have", () => {
  const UNFIT = ["a\u0000b", "\n", "\uffff", "\ufdd0", "a\u0085", "\u{1fffe}"];

  it.each(UNFIT)("is rejected as id_missing if idPath yields it: %j", (id) => {
    expect(normalizeBody({ id }, byId)).toMatchObject({
      events: [],
      failures: [{ reason: "id_missing", path: "idPath" }],
    });
  });

  it.each(UNFIT)("is rejected as id_missing if it is the delivery's own: %j", (deliveryId) => {
    const outcome = normalizeBody({}, { ...all, delivery: { deliveryId } });
    expect(outcome).toMatchObject({ events: [], failures: [{ reason: "id_missing" }] });
  });

  it("does not affect other characters outside of ASCII", () => {
    for (const id of ["café", "😀", "中\u3000文"]) expect(normalizeBody({ id }, byId).events[0]?.id).toBe(id);
  });
});
