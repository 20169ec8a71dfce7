import { describe, expect, it } from "vitest";
import { appendStep, parseSimplePath, readFirst } from "../../src/console/kit/text/simple-path.ts";
import { listFields } from "../../src/console/views/definitions/delivery-fields.ts";
import { setPath } from "../../src/console/views/definitions/path-target.ts";

describe("simple JSONPaths", () => {
  it("are parsed into names and indexes", () => {
    expect(parseSimplePath("$")).toEqual({ root: "", steps: [] });
    expect(parseSimplePath("$.events[*].type")).toEqual({ root: "", steps: ["events", "*", "type"] });
    expect(parseSimplePath("$headers['x-type']")).toEqual({ root: "headers", steps: ["x-type"] });
    expect(parseSimplePath('$["first name"][0]')).toEqual({ root: "", steps: ["first name", "0"] });
  });

  it("are not parsed if they have a filter or a descendant segment", () => {
    expect(parseSimplePath("$..type")).toBeUndefined();
    expect(parseSimplePath("$.events[?@.id]")).toBeUndefined();
  });

  it("select the first of several values", () => {
    const body = { events: [{ type: "a" }, { type: "b" }] };
    expect(readFirst(body, ["events", "*", "type"])).toBe("a");
    expect(readFirst(body, ["events", "1", "type"])).toBe("b");
    expect(readFirst(body, ["missing", "*"])).toBeUndefined();
  });

  it("quote names that are not identifiers", () => {
    expect(appendStep("$", "order")).toBe("$.order");
    expect(appendStep("$.lines", 0)).toBe("$.lines[0]");
    expect(appendStep("$headers", "x-type")).toBe("$headers['x-type']");
    expect(appendStep("$", "it's \\ odd")).toBe("$['it\\'s \\\\ odd']");
  });
});

describe("a picked path", () => {
  it("replaces the path of the chosen definition", () => {
    expect(
      setPath([{ type: "a" }, { type: "b", idPath: "$.x" }], { index: 1, field: "idPath" }, "$.id"),
    ).toEqual([{ type: "a" }, { type: "b", idPath: "$.id" }]);
  });

  it("is set in the last definition if the chosen one was removed, and in a new one if there is none", () => {
    expect(setPath([{ type: "a" }], { index: 3, field: "idPath" }, "$.id")).toEqual([
      { type: "a", idPath: "$.id" },
    ]);
    expect(setPath([], { index: 0, field: "typePath" }, "$.t")).toEqual([{ typePath: "$.t" }]);
  });
});

describe("the fields of a delivery", () => {
  const headers = { "content-type": "application/json", event: "push", "last-event-id": "7" };
  const pathsOf = (source: Parameters<typeof listFields>[1], body = '{"items":[{"id":1},{"id":2}]}') =>
    listFields({ headers, body }, source).map(({ path }) => path);

  it("include all headers of a webhook or poll, but only the event name and id of a stream", () => {
    const itemsPath = "$.items[*]";
    for (const kind of ["webhook", "polling"] as const)
      expect(pathsOf({ kind, itemsPath })).toEqual([
        "$.id",
        "$headers['content-type']",
        "$headers.event",
        "$headers['last-event-id']",
      ]);
    expect(pathsOf({ kind: "sse", itemsPath })).toEqual(["$.id", "$event", "$lastEventId"]);
  });

  it("are those of the first item, which only a path into the body can select", () => {
    expect(pathsOf({ kind: "sse", itemsPath: "$body.items[1]" })).toContain("$.id");
    expect(pathsOf({ kind: "sse", itemsPath: "$headers.items" })).toEqual(["$event", "$lastEventId"]);
    expect(pathsOf({ kind: "sse", itemsPath: undefined }, "text")).toEqual(["$event", "$lastEventId"]);
  });
});
