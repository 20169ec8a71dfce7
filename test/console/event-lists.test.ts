import { expect, it } from "vitest";
import { appOf, channelOf } from "../../src/console/views/events/event.ts";
import { parseFieldFilter } from "../../src/console/views/events/field-filter.ts";

it("the console finds the app and the channel of an event in its topic", () => {
  const topic = "events.org_1.apps.app.event_received.app_1.main.order.created";
  expect([appOf({ topic }), channelOf({ topic })]).toEqual(["app_1", "main"]);
});

it("the field filter of the console matches events by a path into their data, with or without a value", () => {
  const data = {
    order: { total: 12, note: "a = b", items: [{ sku: "x" }], none: null, empty: "" },
    "first name": "Ada",
  };
  const found = ["order.total = 12", "$.order.total=12", "order.items.0.sku = x", 'order.items.0.sku = "x"'];
  const others = ["order.total = 13", "order.total.x", "toString", "order.items.1", "order.note = a"];
  for (const text of [...found, "order.note = a = b", "order.none = null", "order.none", 'order.empty = ""'])
    expect([text, parseFieldFilter(text)?.fits(data)]).toEqual([text, true]);
  for (const text of ["$['first name'] = Ada", '$["first name"]', "$.order.items[0].sku = x"])
    expect([text, parseFieldFilter(text)?.fits(data)]).toEqual([text, true]);
  for (const text of ["$['first name'] = Bob", "$headers['first name']", "$.order.items[?@.sku]"])
    expect([text, parseFieldFilter(text)?.fits(data)]).toEqual([text, false]);
  for (const text of others) expect([text, parseFieldFilter(text)?.fits(data)]).toEqual([text, false]);
  expect(parseFieldFilter(" = 12")).toBeUndefined();
});

it("the field filter of the console becomes a JSONPath and a value for the search of the API", () => {
  for (const [text, path, value] of [
    ["order.total = 12", "$.order.total", "12"],
    ['$.order.note="a = b"', "$.order.note", "a = b"],
    ["items.0.sku", "$.items[0].sku", undefined],
    ["customer.first name = Ada", '$.customer["first name"]', "Ada"],
    ["codes.007", '$.codes["007"]', undefined],
    ["$['a.b'][1] = x", "$['a.b'][1]", "x"],
  ] as const)
    expect(parseFieldFilter(text)).toMatchObject({ path, value });
});
