import { describe, expect, it } from "vitest";
import { appendToQuery, removeFromQuery } from "../../src/lib/url-query.ts";

const RAW = "https://example.com/rows?$filter=modified%20gt%202020&flag&tilde=~&a=1+2&a=%7e&&x[]=;";

describe("a change of a URL's query", () => {
  it("appends parameters with %20 for spaces, and leaves the existing text as it is", () => {
    const url = new URL(RAW);
    appendToQuery(url, [
      ["the name", "a b+c&d=é"],
      ["empty", ""],
      ["lone", "\ud800"],
    ]);
    expect(url.href).toBe(`${RAW}&the%20name=a%20b%2Bc%26d%3D%C3%A9&empty=&lone=%EF%BF%BD`);
  });

  it.each([
    ["https://example.com/", "https://example.com/?a=1"],
    ["https://example.com/?", "https://example.com/?a=1"],
    ["https://example.com/?b=#c", "https://example.com/?b=&a=1#c"],
  ])("appends to the URL %s", (text, changed) => {
    const url = new URL(text);
    appendToQuery(url, [["a", "1"]]);
    expect(url.href).toBe(changed);
  });

  it("removes all parameters with a name, however the name is encoded", () => {
    const url = new URL(`${RAW}&%61=3&the+name=1`);
    removeFromQuery(url, ["a", "the name"]);
    expect(url.href).toBe("https://example.com/rows?$filter=modified%20gt%202020&flag&tilde=~&&x[]=;");
    removeFromQuery(url, ["none"]);
    expect(url.href).toBe("https://example.com/rows?$filter=modified%20gt%202020&flag&tilde=~&&x[]=;");
  });
});
