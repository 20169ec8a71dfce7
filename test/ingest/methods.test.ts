import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { presetSchema } from "../../src/verify/presets.ts";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";

const sign = (text: string): string => createHmac("sha256", "k").update(text).digest("hex");
const secrets = [{ value: "k" }];
const overTarget = { scheme: "hmac", name: "X-Signature", template: "{{method}} {{target}}{{body}}" };
const overBody = { scheme: "hmac", name: "X-Signature" };
const challenge = {
  title: "Challenge",
  when: { method: "GET", all: [{ in: "query", name: "challenge" }] },
  requireVerified: false,
  respond: { body: "{{query:challenge}}" },
};
const caller = presetSchema.parse({
  preset: "caller",
  title: "Caller",
  description: "What Caller sends.",
  documentationUrl: "https://caller.example/webhooks",
  sample: { headers: {}, body: "{}" },
  secret: { label: "Secret", hint: "In its settings." },
  verification: overTarget,
  methods: ["POST", "GET"],
});
const presets = new Map([["caller", caller]]);

describe.each([
  ["the fast path", true],
  ["node:http", false],
])("a webhook channel with other methods than POST, on %s", (_, hookFastPath) => {
  const server = opened(() => startHookServer({ presets, hookFastPath }));

  it("rejects each method that `methods` does not list with 405 and an Allow header", async () => {
    const { id } = await server.open({ methods: ["PUT", "DELETE", "HEAD"] });
    for (const method of ["POST", "GET", "PATCH", "OPTIONS"]) {
      const { status, headers } = await server.send(id, { method });
      expect([method, status, headers.get("allow")]).toEqual([method, 405, "PUT, DELETE, HEAD"]);
    }
    const { headers } = await server.send((await server.open({})).id, { method: "GET" });
    expect(headers.get("allow")).toBe("POST");
  });

  it("reads the body of PUT and PATCH as it reads that of POST", async () => {
    const { id } = await server.open({ methods: ["PUT", "PATCH"] }, [{ type: "e", idPath: "$.id" }]);
    for (const method of ["PUT", "PATCH"]) {
      const { status, text } = await server.send(id, { method, body: JSON.stringify({ id: method }) });
      expect([status, JSON.parse(text).events]).toMatchObject([200, [{ id: method, status: "published" }]]);
    }
  });

  it("publishes the query parameters of GET and DELETE as an item, and reads `$query` and `$headers` too", async () => {
    const { id, appId } = await server.open({ methods: ["GET", "DELETE"] }, [
      { type: "done", typePath: "$.status", idPath: "$.id", payloadPath: "$" },
      { type: "called", typePath: "$headers['x-kind']", idPath: "$query.id" },
    ]);
    const send = async (method: string, query: string, kind = "none") => {
      const { status, text } = await server.send(id, { method, query, headers: { "x-kind": kind } });
      return [status, JSON.parse(text)];
    };
    expect(await send("GET", "?status=done&id=1&tag=a&tag=b%20c")).toMatchObject([
      200,
      { events: [{ type: "done", id: "1", status: "published" }] },
    ]);
    expect(await send("DELETE", "?status=x&id=2", "called")).toMatchObject([
      200,
      { events: [{ type: "called", id: "2" }] },
    ]);
    const { items } = await server.spine.api.call.post(`/apps/${appId}/channels/${id}/explain`, {
      method: "GET",
      query: "status=done&id=1&tag=a&tag=b%20c",
    });
    expect(JSON.parse(items[0].events[0].data)).toEqual({ status: "done", id: "1", tag: ["a", "b c"] });
  });

  it("publishes a whole query as a form, without the parameters that verification consumes", async () => {
    const { id, appId } = await server.open({
      methods: ["GET"],
      verification: { scheme: "token", in: "query", name: "key" },
      secrets,
    });
    expect((await server.send(id, { method: "GET", query: "?key=wrong&a=1" })).status).toBe(401);
    expect((await server.send(id, { method: "GET", query: "?key=k&a=1" })).status).toBe(200);
    const explained = (query: string) =>
      server.spine.api.call.post(`/apps/${appId}/channels/${id}/explain`, { method: "GET", query });
    const { items } = await explained("key=k&a=1&a=%C3%A9+");
    expect(items[0].events[0]).toMatchObject({
      data: "a=1&a=%C3%A9+",
      event: { datacontenttype: "application/x-www-form-urlencoded" },
    });
    expect((await explained("key=k")).items[0].events[0].data).toBeNull();
    expect((await explained("key=k&a=%E9")).items[0].failures).toMatchObject([
      { reason: "invalid_body", detail: expect.stringContaining('parameter "a" is not valid UTF-8') },
    ]);
  });

  it("quarantines GET and DELETE deliveries with a body, because a signature over the query does not cover it", async () => {
    const { id } = await server.open({ methods: ["GET", "DELETE"] });
    const { text } = await server.send(id, { method: "DELETE", query: "?a=1", body: '{"a":2}' });
    expect(JSON.parse(text)).toMatchObject({ published: 0, quarantine: [{ reason: "invalid_body" }] });
  });

  it("verifies the signature of the query, and rejects any other query with 401", async () => {
    const { id } = await server.open({ preset: "caller", secrets });
    const send = (method: string, query: string, signed: string, body?: string) =>
      server.send(id, {
        method,
        query,
        headers: { "x-signature": sign(`${method} /hooks/${id}${signed}`) },
        ...(body === undefined ? {} : { body }),
      });
    expect((await send("GET", "?a=1", "?a=1")).status).toBe(200);
    expect((await send("GET", "?a=2", "?a=1")).status).toBe(401);
    expect((await send("POST", "", '{"a":1}', '{"a":1}')).status).toBe(200);
    expect((await send("PUT", "", '{"a":1}', '{"a":1}')).status).toBe(405);
  });

  it("answers a matching handshake instead of publishing it, also if deliveries have the same method", async () => {
    const { id } = await server.open({ methods: ["GET"], handshakes: [challenge] });
    expect(await server.send(id, { method: "GET", query: "?challenge=c1" })).toMatchObject({
      status: 200,
      text: "c1",
    });
    const { text } = await server.send(id, { method: "GET", query: "?a=1" });
    expect(JSON.parse(text)).toMatchObject({ published: 1 });
  });

  it("answers HEAD with 200 and no body, publishes nothing, and leaves it to a handshake for HEAD if there is one", async () => {
    const { id, appId, uid } = await server.open({
      methods: ["POST", "HEAD"],
      verification: overBody,
      secrets,
    });
    expect(await server.send(id, { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
    const topics: readonly { channelUid: string; length: number }[] = await server.spine.api.call.get(
      `/apps/${appId}/topics`,
    );
    expect(topics.filter(({ channelUid }) => channelUid === uid)).toMatchObject([{ length: 0 }]);
    const own = { title: "Own", when: { method: "HEAD" }, requireVerified: false, respond: { status: 204 } };
    const other = await server.open({ methods: ["POST", "HEAD"], handshakes: [own] });
    expect((await server.send(other.id, { method: "HEAD" })).status).toBe(204);
  });
});

describe("the setting `methods`", () => {
  const server = opened(() => startHookServer({ presets }));

  async function rejectionOf(config: object): Promise<unknown> {
    const { id: appId } = await server.spine.install();
    const channel = { uid: "c", kind: "webhook", config, events: [{ type: "e" }] };
    const { status, body } = await server.spine.api.call("POST", `/apps/${appId}/channels`, channel);
    return status === 200 ? undefined : body.details;
  }

  it.each<[string, object, string, RegExp]>([
    ["an empty list", { methods: [] }, "config.methods", /at least 1|>=1/],
    ["an unknown method", { methods: ["TRACE"] }, "config.methods[0]", /POST/],
    ["a method twice", { methods: ["GET", "GET"] }, "config.methods", /each method once/],
    ["only HEAD", { methods: ["HEAD"] }, "config.methods", /other than HEAD/],
    [
      "a signature of the body",
      { methods: ["POST", "GET"], verification: overBody },
      "config.methods[1]",
      /must not be GET.*template/,
    ],
    [
      "Standard Webhooks",
      { methods: ["DELETE"], verification: { scheme: "standardWebhooks" } },
      "config.methods[0]",
      /cover only the body/,
    ],
    [
      "a token in the body",
      { methods: ["GET"], verification: { scheme: "token", in: "body", name: "$.t" } },
      "config.methods[0]",
      /each would be rejected/,
    ],
    [
      "a signature in the body",
      { methods: ["GET"], verification: { ...overTarget, in: "body", name: "$.s" } },
      "config.methods[0]",
      /signature is in the body/,
    ],
    [
      "a signed token with a hash of the body",
      {
        methods: ["GET"],
        verification: {
          scheme: "jwt",
          keys: { from: "secrets" },
          algorithms: ["HS256"],
          bodyHash: { claim: "h" },
        },
      },
      "config.methods[0]",
      /ofQuery/,
    ],
    [
      "alternatives of which one can be forged",
      { methods: ["GET"], verification: { scheme: "anyOf", of: [overTarget, overBody] } },
      "config.methods[0]",
      /anyone with one delivery could forge others/,
    ],
    [
      "a handshake that matches each delivery",
      { methods: ["GET"], handshakes: [{ ...challenge, when: { method: "GET" }, respond: {} }] },
      "config.methods[0]",
      /"Challenge" answers all of them/,
    ],
    [
      "HEAD without handshakes",
      { methods: ["POST", "HEAD"], allowHandshakes: "never" },
      "config.methods[1]",
      /allowHandshakes/,
    ],
  ])("rejects %s", async (_, config, path, message) => {
    expect(await rejectionOf(config)).toEqual([{ path, message: expect.stringMatching(message) }]);
  });

  it.each<[string, object]>([
    [
      "a signature of the URL",
      { methods: ["GET"], verification: { ...overTarget, template: "{{url}}" }, signsBody: false },
    ],
    ["a token in a header", { methods: ["GET"], verification: { scheme: "token", name: "X-Token" } }],
    ["no verification", { methods: ["PUT", "PATCH", "GET", "DELETE", "HEAD"] }],
    [
      "a signature of headers only, if the channel accepts unsigned content",
      {
        methods: ["GET"],
        verification: { scheme: "hmac", name: "X-S", template: "{{header:X-Nonce}}", signsBody: false },
      },
    ],
  ])("accepts GET with %s", async (_, {
    signsBody,
    ...config
  }: { signsBody?: boolean; verification?: object }) => {
    const verification = { ...config.verification, ...(signsBody === undefined ? {} : { signsBody }) };
    expect(await rejectionOf(config.verification ? { ...config, verification } : config)).toBeUndefined();
  });

  it("drops a method of the preset that the channel's own verification does not cover", async () => {
    const { id } = await server.open({ preset: "caller", verification: overBody, secrets });
    const { status, headers } = await server.send(id, { method: "GET" });
    expect([status, headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("does not exist on channels for CloudEvents, which accept only POST", async () => {
    const { id: appId } = await server.spine.install();
    const channel = { uid: "c", kind: "cloudevents", config: { methods: ["GET"] }, events: [{ type: "e" }] };
    const { status, body } = await server.spine.api.call("POST", `/apps/${appId}/channels`, channel);
    expect([status, body.details[0].path]).toEqual([400, "config.methods"]);
  });

  it("decides which methods `explain` accepts, and whether test events need a body", async () => {
    const { id, appId } = await server.open({ methods: ["GET"] });
    const path = `/apps/${appId}/channels/${id}`;
    const { verification } = await server.spine.api.call.post(`${path}/explain`, { body: "{}" });
    expect(verification).toEqual({ result: "refused", message: "the channel accepts only GET (`methods`)" });
    const tested = await server.spine.api.call.post(`${path}/test`, { method: "GET", query: "a=1" });
    expect(tested).toMatchObject({ received: 1, events: [{ type: "e" }], failures: [] });
  });
});
