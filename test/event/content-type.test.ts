import { describe, expect, it } from "vitest";
import { mergeContentTypes } from "../../src/event/content-type.ts";
import { normalizeBody } from "../normalize/support.ts";

describe("the content type of a request", () => {
  it.each([
    [undefined, undefined],
    ["application/json", "application/json"],
    ["application/json, application/json", "application/json"],
    [["application/json", "Application/JSON; charset=utf-8"], "Application/JSON; charset=utf-8"],
    // A comma instead of a semicolon.
    ["application/json, charset=latin1", "application/json; charset=latin1"],
    ['text/plain; a="x, y"', 'text/plain; a="x, y"'],
    ["application/json, text/plain", "application/json, text/plain"],
    [
      ["text/xml; charset=utf-8", "text/xml; charset=latin1"],
      "text/xml; charset=utf-8, text/xml; charset=latin1",
    ],
  ])("is merged if its header is repeated or a list: %j", (header, merged) => {
    expect(mergeContentTypes(header)).toBe(merged);
  });

  it.each([
    [["application/json", "application/json"]],
    ["application/json, application/json"],
    ["application/json,charset=utf-8"],
  ])("decides how a body is read if the media types are equal: %j", (header) => {
    const given = {
      definitions: [{ type: "t", idPath: "$.id" }],
      delivery: { headers: { "content-type": header } },
    };
    expect(normalizeBody({ id: 1 }, given).events).toMatchObject([{ id: "1" }]);
  });

  it("is an error that names all of them if they differ", () => {
    const given = {
      definitions: [{ type: "t" }],
      delivery: { headers: { "content-type": ["application/json", "text/xml"] } },
    };
    expect(normalizeBody({ id: 1 }, given).failures).toMatchObject([
      {
        reason: "invalid_body",
        detail: "the request declares several content types: application/json, text/xml",
      },
    ]);
  });
});
