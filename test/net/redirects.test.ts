import { describe, expect, it } from "vitest";
import { openedOutbound } from "./support.ts";

const { call, other, server } = openedOutbound();

describe("an HTTP redirect", () => {
  const secrets = {
    authorization: "a",
    cookie: "b",
    "x-api-key": "c",
    accept: "text/html",
    "user-agent": "d",
  };

  it("to another origin is followed without credentials and API key headers", async () => {
    await server.forGet("/a").thenReply(302, "", { location: "/b" });
    await server.forGet("/b").thenReply(307, "", { location: other.urlFor("/c") });
    const unused = await server.forGet("/never").thenReply(200);
    const there = await other.forGet("/c").thenReply(200, "there");
    const response = await call("/a", { headers: secrets });
    expect(response.url).toBe(other.urlFor("/c"));
    const [arrived] = await there.getSeenRequests();
    expect(arrived?.headers).toMatchObject({ accept: "text/html", "user-agent": "d" });
    for (const name of ["authorization", "cookie", "x-api-key"])
      expect(arrived?.headers).not.toHaveProperty(name);
    expect(await unused.getSeenRequests()).toEqual([]);
  });

  it("within the same origin is followed with all headers", async () => {
    await server.forGet("/a").thenReply(308, "", { location: "b?x=1" });
    const there = await server.forGet("/b").thenReply(200);
    await call("/a", { headers: secrets });
    expect((await there.getSeenRequests())[0]?.headers).toMatchObject(secrets);
  });

  it.each([
    [301, "POST", "GET", ""],
    [302, "POST", "GET", ""],
    [303, "POST", "GET", ""],
    [303, "PUT", "GET", ""],
    [302, "PUT", "PUT", "body"],
    [307, "POST", "POST", "body"],
    [308, "POST", "POST", "body"],
  ])("with status %i after a %s request is followed with %s", async (status, method, becomes, body) => {
    await server
      .forAnyRequest()
      .matching(({ path }) => path === "/a")
      .thenReply(status, "", { location: "/b" });
    const there = await server
      .forAnyRequest()
      .matching(({ path }) => path === "/b")
      .thenReply(200);
    await call("/a", { method, body: "body", headers: { "content-type": "text/plain" } });
    const [arrived] = await there.getSeenRequests();
    expect([arrived?.method, await arrived?.body.getText()]).toEqual([becomes, body]);
    expect(arrived?.headers["content-type"]).toBe(body === "" ? undefined : "text/plain");
  });

  it("is rejected if following it would send the request body to another origin", async () => {
    await server.forPost("/a").thenReply(307, "", { location: other.urlFor("/") });
    const there = await other.forAnyRequest().thenReply(200);
    await expect(call("/a", { method: "POST", body: "client_secret=x" })).rejects.toMatchObject({
      code: "redirects",
    });
    expect(await there.getSeenRequests()).toEqual([]);
  });

  it.each([
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "http://a:b@127.0.0.1/",
    "http://[",
    "data:,x",
    "javascript:0",
  ])("is rejected if its Location is %s", async (location) => {
    await server.forGet("/a").thenReply(302, "", { location });
    await expect(call("/a")).rejects.toMatchObject({ code: "redirects" });
  });

  it("is rejected beyond maxRedirects", async () => {
    await server.forGet("/a").thenReply(302, "", { location: "/a" });
    await expect(call("/a", {}, { maxRedirects: 3 })).rejects.toMatchObject({ code: "redirects" });
    await expect(call("/a", {}, { maxRedirects: 0 })).rejects.toMatchObject({ code: "redirects" });
  });

  it("without a Location is returned as the response", async () => {
    await server.forGet("/a").thenReply(304, "");
    await server.forGet("/b").thenReply(302, "no");
    expect((await call("/a")).status).toBe(304);
    expect((await call("/b")).status).toBe(302);
  });
});
