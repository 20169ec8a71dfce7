import { describe, expect, it } from "vitest";
import { type Answer, createTestApi } from "../support/api.ts";
import { opened } from "../support/opened.ts";

const api = opened(createTestApi);

const BLUEPRINT = { title: "GitHub" };

async function raw(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await api.app.request(path, init);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

describe("API authentication", () => {
  it.each([
    ["no header", undefined],
    ["an empty header", ""],
    ["no token", "Bearer "],
    ["another scheme", "Basic abc"],
    ["an unknown key", "Bearer ik_unknown"],
    ["an overlong key", `Bearer ${"x".repeat(9_000)}`],
  ])("rejects %s with 401", async (_, authorization) => {
    const headers = authorization === undefined ? {} : { authorization };
    const answer = await raw("/v1/blueprints", { headers });
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual({ code: "unauthenticated", message: expect.any(String) });
    expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
  });

  it("rejects a request without a key with 401 even if its path or body is invalid", async () => {
    expect((await raw("/v1/no-such-thing")).status).toBe(401);
    expect((await raw("/v1/blueprints", { method: "POST", body: "{" })).status).toBe(401);
  });

  it("stores API keys only as hashes", async () => {
    const key = await api.keyWith("apps.read");
    const rows = await api.database.db.selectFrom("apiKeys").selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(key);
    expect(rows.map(({ prefix }) => prefix)).toContain(key.slice(0, 11));
  });
});

describe("API permissions", () => {
  it("allow only operations that the API key has permissions for, and a 403 response names the missing permission", async () => {
    const reader = api.as(await api.keyWith("blueprints.read"));
    expect((await reader("GET", "/blueprints")).status).toBe(200);
    const write = await reader("POST", "/blueprints", BLUEPRINT);
    expect([write.status, write.body.code]).toEqual([403, "permission_denied"]);
    expect(write.body.message).toContain("blueprints.write");
    const other = await reader("GET", "/apps");
    expect(other.body.message).toContain("apps.read");
    expect((await reader("GET", "/apps/app_x/channels")).body.message).toContain("apps.read");
  });

  it("are checked before the request body and the ids in the path", async () => {
    const reader = api.as(await api.keyWith("blueprints.read"));
    expect((await reader("POST", "/blueprints", "{")).status).toBe(403);
    expect((await reader("DELETE", "/blueprints/nonsense")).status).toBe(403);
  });
});

describe("API error responses", () => {
  it("have the same format for unknown routes, wrong methods and malformed ids", async () => {
    const unknown = await api.call("GET", "/no-such-thing");
    expect([unknown.status, unknown.body.code]).toEqual([404, "not_found"]);
    expect((await raw("/nowhere")).body.code).toBe("not_found");
    const method = await api.call("PATCH", "/blueprints", {});
    expect([method.status, method.body.code]).toEqual([405, "method_not_allowed"]);
    expect(method.headers.get("allow")).toBe("GET, HEAD, POST");
    expect((await api.call("POST", "/blueprints/bp_x", {})).headers.get("allow")).toBe(
      "GET, HEAD, PUT, DELETE",
    );
    for (const id of ["bp_x", "app_x", "%00", "a%2Fb", "ä"]) {
      expect((await api.call("GET", `/blueprints/${id}`)).status).toBe(404);
    }
  });

  it("describe malformed JSON, unsupported media types and oversized bodies", async () => {
    for (const body of ["{", "nul", '{"title": "a"} x', "\u0000"]) {
      const answer = await api.call("POST", "/blueprints", body);
      expect([answer.status, answer.body.code]).toEqual([400, "invalid_parameters"]);
    }
    const headers = await authorized();
    const form = await raw("/v1/blueprints", {
      method: "POST",
      headers: { ...headers, "content-type": "text/plain" },
      body: "a",
    });
    expect([form.status, form.body.code]).toEqual([415, "unsupported_media_type"]);
    const bare = await raw("/v1/blueprints", { method: "POST", headers, body: Buffer.from("{}") });
    expect(bare.status).toBe(415);
    const large = await api.call("POST", "/blueprints", { title: "x".repeat(1024 * 1024) });
    expect([large.status, large.body.code]).toEqual([413, "payload_too_large"]);
    const chunked = new ReadableStream({
      pull: (controller) => controller.enqueue(Buffer.alloc(65_536, 32)),
    });
    const endless = await raw("/v1/blueprints", {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: chunked,
      duplex: "half",
    } as RequestInit);
    expect(endless.status).toBe(413);
  });

  it("list at most 100 invalid fields", async () => {
    const names = Array.from({ length: 10_000 }, (_, n) => [`x${n}`, 1]);
    for (const body of [Object.fromEntries(names), { title: "a", channels: Array(100).fill({}) }]) {
      const answer = await api.call("POST", "/blueprints", body);
      expect([answer.status, answer.body.details.length]).toEqual([400, 100]);
    }
  });

  it("name the fields whose text contains NUL or lone surrogates", async () => {
    const answer = await api.call(
      "POST",
      "/blueprints",
      '{"title":"a\\u0000b","description":"\\ud800","x\\u0000":1}',
    );
    expect(answer.status).toBe(400);
    expect(answer.body.details.map(({ path }: { path: string }) => path)).toEqual([
      "title",
      "description",
      "",
    ]);
  });

  it("have status 404 for a NUL character in the path and 400 for a NUL character in the query", async () => {
    for (const path of ["/topics", "/subscriptions/sub_%00", "/events/a%00/1-1", "/quarantine/%00"]) {
      expect([path, (await api.call("GET", `/apps/app_%00${path}`)).status]).toEqual([path, 404]);
      expect([path, (await api.call("GET", `/apps/app_x${path}`)).status]).toEqual([path, 404]);
    }
    for (const query of ["events?type=%00", "quarantine?channelId=ch_%00", "topics?limit=1%00"]) {
      const answer = await api.call("GET", `/apps/app_x/${query}`);
      expect([query, answer.status]).toEqual([query, 400]);
      expect(answer.body.details).toHaveLength(1);
    }
  });

  it("name the query parameter that contains a NUL character", async () => {
    const answer = await api.call("GET", "/audit?accountId=a%00b");
    expect([answer.status, answer.body.details]).toEqual([
      400,
      [{ path: "accountId", message: expect.stringContaining("U+0000") }],
    ]);
    const app = "app_01jc9x2k4v8m3n5p7q9r1s0";
    expect((await api.call("GET", `/apps/${app}/events/a%00b/1-1`)).status).toBe(404);
  });

  it("have status 400 for a JSON body with 50,000 nested objects", async () => {
    const answer = await api.call("POST", "/blueprints", `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`);
    expect(answer.status).toBe(400);
  });

  it("with status 500 do not contain the cause, which is logged instead", async () => {
    await api.database.db.schema.alterTable("blueprints").renameTo("elsewhere").execute();
    const answer = await api.call("GET", "/blueprints");
    await api.database.db.schema.alterTable("elsewhere").renameTo("blueprints").execute();
    expect([answer.status, answer.body.code]).toEqual([500, "internal"]);
    expect(JSON.stringify(answer.body)).not.toMatch(/blueprints|relation|select/i);
    const line = api.lines.findLast(({ status }) => status === 500);
    expect(line).toMatchObject({
      level: "error",
      requestId: answer.headers.get("x-request-id"),
      method: "GET",
    });
    expect(JSON.stringify(line)).toContain("does not exist");
  });
});

describe("API requests", () => {
  it("keep a valid X-Request-Id from the client, and otherwise get a new request id", async () => {
    const given = await raw("/v1/blueprints", { headers: { "x-request-id": "trace-1.a:b" } });
    expect(given.headers.get("x-request-id")).toBe("trace-1.a:b");
    for (const id of ["with space", "x".repeat(129)]) {
      const made = await raw("/nowhere", { headers: { "x-request-id": id } });
      expect(made.headers.get("x-request-id")).toMatch(/^req_/);
    }
  });

  it("are counted by method and status in the metrics, even without a matching route", async () => {
    const reads = await countOf("GET", 200);
    const others = await countOf("other", 405);
    await api.call("GET", "/blueprints");
    await api.call("PROPFIND", "/blueprints");
    expect(await countOf("GET", 200)).toBe(reads + 1);
    expect(await countOf("other", 405)).toBe(others + 1);
    const text = await api.metrics.registry.metrics();
    expect(text).toMatch(/^inlet_api_request_duration_seconds_count\{.*\} [1-9]/m);
  });

  it("are logged if they change something or fail, but not if they are successful reads", async () => {
    const before = api.lines.length;
    await api.call("GET", "/blueprints");
    expect(api.lines).toHaveLength(before);
    const made = await api.call("POST", "/blueprints", BLUEPRINT);
    await api.call("GET", "/apps/app_x/channels/ch_secretaddress");
    await api.call("GET", "/apps/ch_secretaddress");
    const [write, failure, misplaced, ...rest] = api.lines.slice(before);
    expect(rest).toEqual([]);
    expect(write).toMatchObject({
      level: "info",
      method: "POST",
      route: "/v1/blueprints",
      status: 200,
      requestId: made.headers.get("x-request-id"),
      organizationId: made.body.organizationId,
      keyId: expect.stringMatching(/^key_/),
    });
    expect(failure).toMatchObject({ status: 404, route: "/v1/apps/:appId/channels/:channelId" });
    expect(JSON.stringify([failure, misplaced])).not.toContain("secretaddress");
  });
});

describe("API lists", () => {
  it("are JSON arrays in creation order, with the total count in a header", async () => {
    const call = api.as(await api.createForeignKey());
    const titles = ["a", "b", "c"];
    for (const title of titles) await call("POST", "/blueprints", { title });
    const all = await call("GET", "/blueprints");
    expect(all.body.map(({ title }: { title: string }) => title)).toEqual(titles);
    const part = await call("GET", "/blueprints?limit=1&offset=1");
    expect(part.body.map(({ title }: { title: string }) => title)).toEqual(["b"]);
    expect(part.headers.get("x-total-count")).toBe("3");
    const beyond = await call("GET", "/blueprints?offset=10");
    expect([beyond.body, beyond.headers.get("x-total-count")]).toEqual([[], "3"]);
  });

  it.each([
    "limit=0",
    "limit=201",
    "limit=x",
    "limit=",
    "limit=1.5",
    "offset=-1",
    "offset=1e3",
  ])("reject the invalid query %s", async (query) => {
    const answer = await api.call("GET", `/blueprints?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body.details[0].path).toBe(query.split("=")[0]);
  });
});

it("an API request is counted in the metrics under the route that handled it, even if other routes match too", async () => {
  await api.call("GET", "/stores/categories");
  await api.call("GET", "/stores/store_unknown");
  const { values } = await api.metrics.apiRequests.get();
  const counted = values
    .filter(({ labels }) => String(labels.route).startsWith("/v1/stores"))
    .map(({ labels, value }) => [labels.route, labels.status, value]);
  expect(counted).toEqual([
    ["/v1/stores/categories", 200, 1],
    ["/v1/stores/:storeId", 404, 1],
  ]);
});

async function countOf(method: string, status: number): Promise<number> {
  const { values } = await api.metrics.apiRequests.get();
  const counted = values.filter(({ labels }) => labels.method === method && labels.status === status);
  return counted.reduce((sum, { value }) => sum + value, 0);
}

async function authorized(): Promise<Record<string, string>> {
  return { authorization: `Bearer ${await api.keyWith("*")}` };
}
