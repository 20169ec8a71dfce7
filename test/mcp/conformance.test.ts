/**
 * Requirements of the Model Context Protocol 2026-07-28, and of the draft of SEP-3415 (events) of October 2026, on servers. The name of each
 * test ends with the section that it proves. Delivery by webhook is in `subscribe.test.ts`.
 */
import { Ajv2020 } from "ajv/dist/2020.js";
import { beforeAll, describe, expect, it } from "vitest";
import { ERROR_CODES, EVENTS_EXTENSION, SUBSCRIPTION_ID } from "../../src/mcp/events/revision.ts";
import type { GivenChannel } from "../support/channels.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { until } from "../support/until.ts";
import { type McpRequest, openStream, sendRequest, VERSION } from "./clients.ts";
import { givenTicks, nameOf, sendTicks, TICK_SCHEMA } from "./ticks.ts";

const gateway = givenGateway();
const ISSUER = "https://issuer.example";
const withIssuer = givenGateway(
  { INLET_OIDC_ISSUER: ISSUER, INLET_OIDC_AUDIENCE: "inlet" },
  { stores: gateway.stores },
);

let channel: GivenChannel;
let name: string;
beforeAll(async () => {
  channel = await givenTicks(gateway);
  name = nameOf(channel);
});

const send = (method: string, params: object = {}, more: Partial<McpRequest> = {}) =>
  sendRequest(gateway, { method, params, ...more });

async function poll(params: object) {
  const { message } = await send("events/poll", params);
  return message.result;
}

const numbersOf = ({ events }: { readonly events: readonly { readonly data: { readonly n: number } }[] }) =>
  events.map(({ data }) => data.n);

const createKey = async (...permissions: string[]): Promise<string> => {
  const body = { name: "test", permissions };
  return (await gateway.api<{ key: string }>("POST", "/iam/api-keys", body)).key;
};

describe("Streamable HTTP", () => {
  it("rejects a request with a foreign Origin with 403 (Security & Endpoint)", async () => {
    for (const origin of ["https://evil.example", "null"])
      expect((await send("tools/list", {}, { headers: { origin } })).status).toBe(403);
    expect((await send("tools/list", {}, { headers: { origin: gateway.origin } })).status).toBe(200);
  });

  it("responds to a request with JSON or an event stream (Sending Messages, 6)", async () => {
    for (const method of ["tools/list", "events/list"])
      expect((await send(method)).headers.get("content-type")).toMatch(
        /^(application\/json|text\/event-stream)/,
      );
    const stream = await openStream(gateway, { name });
    expect(stream.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(stream.headers.get("x-accel-buffering")).toBe("no");
    stream.close();
  });

  it("responds to a notification with 202 and no body (Sending Messages, 5)", async () => {
    const body = JSON.stringify({
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params: { requestId: 1 },
    });
    const response = await send("notifications/cancelled", {}, { body });
    expect([response.status, response.text]).toEqual([202, ""]);
  });

  it.each([
    ["a batch", `[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`, expect.any(Number)],
    ["text that is not JSON", "{", -32700],
    ["an object that is not JSON-RPC", `{"id":1,"method":"tools/list"}`, -32600],
  ])("rejects %s with 400 and a JSON-RPC error (Sending Messages, 4)", async (_, body, code) => {
    const { status, message } = await send("tools/list", {}, { body });
    expect([status, message]).toMatchObject([400, { jsonrpc: "2.0", error: { code } }]);
  });

  it.each([
    ["another protocol version", "tools/list", { "mcp-protocol-version": "2025-11-25" }],
    ["another method", "tools/list", { "mcp-method": "tools/call" }],
    ["no method", "tools/list", { "mcp-method": undefined }],
    ["another tool", "tools/call", { "mcp-name": "list_channels" }],
    ["no tool", "tools/call", { "mcp-name": undefined }],
  ])("rejects a request whose headers name %s with 400 and -32020 (Server Validation)", async (_, method, headers) => {
    const { status, message } = await send(method, { name: "list_apps" }, { headers });
    expect([status, message]).toMatchObject([400, { id: 1, error: { code: -32020 } }]);
  });

  it("decodes a Base64 value of Mcp-Name before it compares it (Value Encoding)", async () => {
    const headers = { "mcp-name": `=?base64?${Buffer.from("list_apps").toString("base64")}?=` };
    expect((await send("tools/call", { name: "list_apps" }, { headers })).status).toBe(200);
  });

  it("rejects an unknown protocol version with 400, -32022 and the supported versions (Protocol Version Header)", async () => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "1900-01-01",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const headers = { "mcp-protocol-version": "1900-01-01" };
    const { status, message } = await send("tools/list", { _meta }, { headers });
    const data = { supported: expect.arrayContaining([VERSION]), requested: "1900-01-01" };
    expect([status, message]).toMatchObject([400, { id: 1, error: { code: -32022, data } }]);
  });

  it("rejects an unknown method with 404 and -32601 (Protocol Version Header)", async () => {
    for (const method of ["tools/nothing", "events/nothing", "resources/list"]) {
      const { status, message } = await send(method);
      expect([method, status, message]).toMatchObject([method, 404, { id: 1, error: { code: -32601 } }]);
    }
  });

  it("rejects GET and DELETE with 405, and creates no session (Earlier Streamable HTTP Revisions)", async () => {
    for (const method of ["GET", "DELETE"]) {
      const headers = { authorization: `Bearer ${API_KEY}` };
      const response = await fetch(`${gateway.origin}/mcp`, { method, headers });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
    }
    const headers = { "mcp-session-id": "1", "last-event-id": "1" };
    const { status, headers: returned } = await send("tools/list", {}, { headers });
    expect([status, returned.get("mcp-session-id")]).toEqual([200, null]);
  });
});

describe("Base protocol", () => {
  it("returns the id of the request, a string or an integer (Responses)", async () => {
    for (const id of ["a", 7, 0]) {
      expect((await send("tools/list", {}, { id })).message).toMatchObject({ jsonrpc: "2.0", id });
      expect((await send("nothing/at/all", {}, { id })).message).toMatchObject({
        id,
        error: { code: -32601 },
      });
    }
    const body = JSON.stringify({ jsonrpc: "2.0", id: null, method: "tools/list", params: {} });
    expect((await send("tools/list", {}, { body })).status).toBe(400);
  });

  it("returns a result with a type and the server's name (Result Responses, _meta)", async () => {
    for (const [method, params] of [
      ["server/discover", {}],
      ["tools/list", {}],
      ["tools/call", { name: "list_apps" }],
      ["events/list", {}],
      ["events/poll", { name }],
    ] as const) {
      const { result } = (await send(method, params)).message;
      expect(result).toMatchObject({
        resultType: "complete",
        _meta: { "io.modelcontextprotocol/serverInfo": { name: "inlet" } },
      });
    }
  });

  it.each([
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
  ])("rejects a request without %s with 400 (_meta, per-request protocol fields)", async (omitted) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": VERSION,
      "io.modelcontextprotocol/clientCapabilities": {},
      [omitted]: undefined,
    };
    const { status, message } = await send("tools/list", { _meta });
    expect([status, message]).toMatchObject([400, { error: { code: -32602 } }]);
  });
});

describe("Discovery and caching", () => {
  it("names versions, capabilities and extensions (server/discover, Extension Negotiation)", async () => {
    const { result } = (await send("server/discover")).message;
    expect(result).toMatchObject({
      supportedVersions: expect.arrayContaining([VERSION]),
      capabilities: { tools: {}, extensions: { [EVENTS_EXTENSION]: {} } },
    });
  });

  it("marks results that depend on the caller as private (Caching, Cache Scope Field)", async () => {
    for (const method of ["server/discover", "tools/list"]) {
      const { result } = (await send(method)).message;
      expect(result.ttlMs).toBeGreaterThanOrEqual(0);
      if (method === "tools/list") expect(result.cacheScope).toBe("private");
    }
  });
});

describe("Tools", () => {
  it("have names of permitted characters and valid schemas, in a fixed order (Tool Names, Tool)", async () => {
    const { tools } = (await send("tools/list")).message.result;
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    for (const tool of tools) {
      expect(tool.name).toMatch(/^[A-Za-z0-9_.-]{1,128}$/);
      expect(tool.inputSchema).toMatchObject({ type: "object" });
      expect(ajv.validateSchema(tool.inputSchema)).toBe(true);
    }
    expect((await send("tools/list")).message.result.tools).toEqual(tools);
  });

  it("that are unknown or not permitted get -32602 (Error Handling, protocol errors)", async () => {
    const error = { code: -32602 };
    expect((await send("tools/call", { name: "nothing" })).message).toMatchObject({ error });
    const token = await createKey("problems.read");
    expect((await send("tools/call", { name: "list_apps" }, { token })).message).toMatchObject({ error });
  });

  it("report invalid arguments in the result, so that a model can correct them (Error Handling, tool execution errors)", async () => {
    for (const given of [{ limit: "many" }, { colour: "red" }]) {
      const { message } = await send("tools/call", { name: "list_apps", arguments: given });
      expect(message.result).toMatchObject({ isError: true, content: [{ type: "text" }] });
    }
  });
});

describe("Authorization", () => {
  it("rejects a missing or invalid token with 401 (Token Handling)", async () => {
    for (const token of [undefined, "wrong"])
      expect((await send("tools/list", {}, { token })).status).toBe(401);
  });

  it("accepts no token in the address (Token Requirements)", async () => {
    const address = `${gateway.origin}/mcp?access_token=${API_KEY}`;
    expect((await fetch(address, { method: "POST" })).status).toBe(401);
  });

  it("names the issuer in the metadata to which a 401 points (Protected Resource Metadata Discovery Requirements)", async () => {
    const { headers } = await fetch(`${withIssuer.origin}/mcp`, { method: "POST" });
    const [, address = ""] = /resource_metadata="([^"]+)"/.exec(headers.get("www-authenticate") ?? "") ?? [];
    expect(address).toBe(`${withIssuer.origin}/.well-known/oauth-protected-resource/mcp`);
    for (const path of ["", "/mcp"]) {
      const found = await fetch(`${withIssuer.origin}/.well-known/oauth-protected-resource${path}`);
      expect(await found.json()).toEqual({
        resource: `${withIssuer.origin}/mcp`,
        authorization_servers: [ISSUER],
        bearer_methods_supported: ["header"],
      });
    }
  });
});

describe("Events, SEP-3415", () => {
  it("describes each event type with its delivery modes and schemas (Listing Available Events)", async () => {
    const { events } = (await send("events/list")).message.result;
    const ajv = new Ajv2020({ strict: false });
    for (const { name, description, delivery, inputSchema, payloadSchema } of events) {
      expect([name, description]).toEqual([expect.any(String), expect.any(String)]);
      expect(delivery).toEqual(expect.arrayContaining(["poll", "push"]));
      for (const schema of [inputSchema, payloadSchema]) expect(ajv.validateSchema(schema)).toBe(true);
    }
    const [{ payloadSchema }] = events;
    expect(payloadSchema).toEqual(TICK_SCHEMA);
  });

  it("starts at the current position without a cursor (Poll-Based Delivery, Cursor Lifecycle)", async () => {
    const own = await givenTicks(gateway);
    await sendTicks(own, 0, 1);
    for (const cursor of [null, undefined]) {
      const result = await poll({ name: nameOf(own), cursor });
      expect(result).toMatchObject({
        events: [],
        cursor: expect.any(String),
        truncated: false,
        hasMore: false,
      });
      expect(result.nextPollMs).toBeGreaterThan(0);
    }
  });

  it("delivers occurrences in order and in batches, each with a stable id (Event Occurrences, Poll-Based Delivery, Ordering)", async () => {
    const own = await givenTicks(gateway);
    const { cursor } = await poll({ name: nameOf(own) });
    await sendTicks(own, 0, 5);
    const first = await poll({ name: nameOf(own), cursor, maxEvents: 3 });
    expect([numbersOf(first), first.hasMore]).toEqual([[0, 1, 2], true]);
    const rest = await poll({ name: nameOf(own), cursor: first.cursor });
    expect([numbersOf(rest), rest.hasMore]).toEqual([[3, 4], false]);
    for (const event of [...first.events, ...rest.events])
      expect(event).toMatchObject({
        eventId: expect.any(String),
        name: nameOf(own),
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        data: { n: expect.any(Number) },
      });
    const again = await poll({ name: nameOf(own), cursor });
    expect(again.events).toMatchObject(
      [...first.events, ...rest.events].map(({ eventId }: { eventId: string }) => ({ eventId })),
    );
  });

  it("moves the cursor while no event matches (Cursor Lifecycle, advancement without events)", async () => {
    const own = await givenTicks(gateway);
    const params = { name: nameOf(own), arguments: { filter: false } };
    const { cursor } = await poll(params);
    await sendTicks(own, 0, 2);
    const moved = await poll({ ...params, cursor });
    expect(moved).toMatchObject({ events: [], truncated: false });
    await gateway.stores.client.xtrim(own.topicOf("tick"), "MAXLEN", 0);
    // The removed events are before the new cursor, and after the old one.
    expect(await poll({ ...params, cursor: moved.cursor })).toMatchObject({ truncated: false });
    expect(await poll({ ...params, cursor })).toMatchObject({ truncated: true });
  });

  it("reports a gap as a result with a new cursor, and only once (Gaps and truncated)", async () => {
    const own = await givenTicks(gateway);
    const { cursor } = await poll({ name: nameOf(own) });
    await sendTicks(own, 0, 3);
    await gateway.stores.client.xtrim(own.topicOf("tick"), "MAXLEN", 1);
    const gap = await poll({ name: nameOf(own), cursor });
    expect([numbersOf(gap), gap.truncated]).toEqual([[2], true]);
    expect(await poll({ name: nameOf(own), cursor: gap.cursor })).toMatchObject({
      events: [],
      truncated: false,
    });
  });

  it("skips events older than maxAgeMs and says so, but not without a cursor (Bounding replay with maxAgeMs)", async () => {
    const own = await givenTicks(gateway);
    const { cursor } = await poll({ name: nameOf(own) });
    await sendTicks(own, 0, 1);
    const isSkipped = async () => (await poll({ name: nameOf(own), cursor, maxAgeMs: 1 })).truncated;
    await until(isSkipped);
    expect(await poll({ name: nameOf(own), maxAgeMs: 1 })).toMatchObject({ events: [], truncated: false });
  });

  it("continues on a stream after the cursor of a poll, and in a poll after the cursor of a stream (Cursor Lifecycle)", async () => {
    const own = await givenTicks(gateway);
    const { cursor } = await poll({ name: nameOf(own) });
    await sendTicks(own, 0, 3);
    const stream = await openStream(gateway, { name: nameOf(own), cursor });
    await until(() => stream.numbers().length === 3);
    stream.close();
    const [first] = stream.ofKind("event");
    expect(numbersOf(await poll({ name: nameOf(own), cursor: first?.params.cursor }))).toEqual([1, 2]);
  });

  it.each([
    ["an unknown name", { name: "app.in.nothing" }, ERROR_CODES.notFound, { kind: "event" }],
    [
      "arguments that do not match inputSchema",
      { arguments: { colour: 1 } },
      ERROR_CODES.invalidParams,
      undefined,
    ],
    ["a cursor that the server has not issued", { cursor: "x" }, ERROR_CODES.invalidParams, undefined],
  ])("rejects %s with a JSON-RPC error, and opens no stream (Error Handling, Event delivery)", async (_, given, code, data) => {
    for (const method of ["events/poll", "events/stream"]) {
      const { message } = await send(method, { name, ...given });
      expect(message).toMatchObject({ id: 1, error: { code, ...(data && { data }) } });
    }
  });

  it("rejects callers without the permission with Forbidden (Authorization, subscribe time)", async () => {
    const token = await createKey("problems.read");
    for (const method of ["events/poll", "events/stream"])
      expect((await send(method, { name }, { token })).message.error.code).toBe(ERROR_CODES.forbidden);
  });

  it("confirms a stream first, and names its request in each notification (Event delivery)", async () => {
    const own = await givenTicks(gateway);
    const { cursor } = await poll({ name: nameOf(own) });
    await sendTicks(own, 0, 2);
    for (const id of ["stream-a", 42]) {
      const stream = await openStream(gateway, { name: nameOf(own), cursor }, { id });
      await until(() => stream.numbers().length === 2);
      stream.close();
      const [active, ...events] = stream.messages;
      expect(active).toMatchObject({
        method: "notifications/events/active",
        params: { cursor: expect.any(String), truncated: false },
      });
      for (const event of events)
        expect(event).toMatchObject({
          method: "notifications/events/event",
          params: { eventId: expect.any(String), name: nameOf(own), cursor: expect.any(String) },
        });
      for (const { params } of stream.messages) expect(params._meta[SUBSCRIPTION_ID]).toBe(id);
    }
  });

  it("reports a gap of a stream by another confirmation, and continues (Event delivery, Gaps and truncated)", async () => {
    const own = await givenTicks(gateway);
    const { cursor } = await poll({ name: nameOf(own) });
    await sendTicks(own, 0, 3);
    await gateway.stores.client.xtrim(own.topicOf("tick"), "MAXLEN", 1);
    const stream = await openStream(gateway, { name: nameOf(own), cursor });
    await until(() => stream.numbers().length === 1);
    await sendTicks(own, 3, 4);
    await until(() => stream.numbers().length === 2);
    stream.close();
    expect(stream.numbers()).toEqual([2, 3]);
    expect(stream.ofKind("active").filter(({ params }) => params.truncated)).toHaveLength(1);
  });

  it("ends a stream of a closed event type with NotFound and a final result (Subscription Termination, Stream termination)", async () => {
    const own = await givenTicks(gateway);
    const stream = await openStream(gateway, { name: nameOf(own) }, { id: 5 });
    await until(() => stream.ofKind("active").length === 1);
    await gateway.api("PUT", own.path, { events: [{ type: "tick" }] });
    await until(() => !stream.isOpen());
    const _meta = { [SUBSCRIPTION_ID]: 5 };
    const error = { code: ERROR_CODES.notFound, message: expect.any(String), data: { kind: "event" } };
    expect(stream.ofKind("terminated")).toMatchObject([{ params: { error, _meta } }]);
    expect(stream.messages.at(-1)).toMatchObject({ id: 5, result: { resultType: "complete", _meta } });
  });
});
