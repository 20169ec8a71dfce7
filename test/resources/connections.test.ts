import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApi, type TestApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api[Symbol.asyncDispose]());

const ORIGIN = "https://api.example.com";
const KINDS = {
  apiKey: { name: "X-Key", value: "secret-1" },
  basic: { username: "inlet", password: "secret-1" },
  bearer: { token: "secret-1" },
  oauth2: {
    grant: "clientCredentials",
    tokenEndpoint: "https://id.example.com/token",
    clientId: "inlet",
    clientSecret: "secret-1",
  },
  custom: { fields: { key: "secret-1" }, headers: { "X-Auth": "k {{key}}" } },
} as const;

const create = async (kind: keyof typeof KINDS, config: object = KINDS[kind], origins = [ORIGIN]) =>
  api.call("POST", "/connections", { name: "Example", kind, config, allowedOrigins: origins });
const change = (id: string, patch: object) => api.call("PUT", `/connections/${id}`, patch);

describe("a connection", () => {
  it.each(
    Object.keys(KINDS) as (keyof typeof KINDS)[],
  )("of kind %s never answers its secret", async (kind) => {
    const created = await create(kind);
    expect(created.status).toBe(200);
    expect(created.body).toMatchObject({ kind, name: "Example", state: "ok", lastUsedAt: null });
    const { id } = created.body;
    const changed = await change(id, { name: "Renamed" });
    const read = [
      created,
      changed,
      await api.call("GET", `/connections/${id}`),
      await api.call("GET", "/connections"),
    ];
    expect(changed.body.name).toBe("Renamed");
    for (const { body } of read) expect(JSON.stringify(body)).not.toContain("secret-1");
    const row = await api.database.db
      .selectFrom("connections")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    expect(JSON.stringify(row)).not.toContain("secret-1");
    expect((await api.call("DELETE", `/connections/${id}`)).body).toEqual({ id });
    expect((await api.call("GET", `/connections/${id}`)).status).toBe(404);
  });

  it.each([
    ["config.name", "apiKey", { name: "Host", value: "a" }],
    ["config.name", "apiKey", { name: "User-Agent", value: "a" }],
    ["config.name", "apiKey", { name: "X Key", value: "a" }],
    ["config.value", "apiKey", { name: "X-Key", value: "a\r\nb: c" }],
    ["config.username", "basic", { username: "a:b", password: "c" }],
    ["config.token", "bearer", { token: "a b\n" }],
    ["config.token", "bearer", {}],
    ["config.headers.x-auth", "custom", { fields: { key: "a" }, headers: { "X-Auth": "{{other}}" } }],
    ["config.headers.x-auth", "custom", { fields: { key: "a" }, headers: { "X-Auth": "{{key | hex}}" } }],
    ["config.headers.x-auth", "custom", { fields: { key: "a\n" }, headers: { "X-Auth": "{{key}}" } }],
    ["config.issuer", "oauth2", { grant: "clientCredentials", clientId: "a", clientSecret: "b" }],
    ["config.clientSecret", "oauth2", { ...KINDS.oauth2, clientSecret: undefined }],
    ["config.refreshToken", "oauth2", { ...KINDS.oauth2, grant: "refreshToken" }],
    ["config.clientAuthentication", "oauth2", { ...KINDS.oauth2, clientAuthentication: "none" }],
    ["config.tokenParameters.client_id", "oauth2", { ...KINDS.oauth2, tokenParameters: { client_id: "b" } }],
    ["config.tokenEndpoint", "oauth2", { ...KINDS.oauth2, tokenEndpoint: "https://a:b@id.example.com/" }],
  ] as const)("refuses %s of kind %s: %j", async (path, kind, config) => {
    const { status, body } = await create(kind, config);
    expect(status).toBe(400);
    expect(body.details.map((finding: { path: string }) => finding.path)).toContain(path);
  });

  it.each([
    "api.example.com",
    "https://api.example.com/path",
    "https://api.example.com?x",
    "https://a@api.example.com",
    "ftp://api.example.com",
    "*",
  ])("refuses %s as an origin", async (origin) => {
    const { status, body } = await create("bearer", KINDS.bearer, [origin]);
    expect(status).toBe(400);
    expect(body.details[0].path).toBe("allowedOrigins[0]");
  });

  it("spells origins as they are compared", async () => {
    const { body } = await create("bearer", KINDS.bearer, ["HTTPS://API.example.com:443/", ORIGIN]);
    expect(body.allowedOrigins).toEqual([ORIGIN]);
  });

  it("wants the secret again where it may be sent to more places", async () => {
    const wider = { allowedOrigins: [ORIGIN, "https://evil.example"] };
    const bearer = (await create("bearer")).body.id;
    const refused = await change(bearer, wider);
    expect(refused.status).toBe(400);
    expect(refused.body.details[0].path).toBe("config.token");
    expect((await change(bearer, { allowedOrigins: ["https://evil.example"] })).status).toBe(400);
    expect((await change(bearer, { ...wider, config: { token: "secret-2" } })).status).toBe(200);
    expect((await change(bearer, { allowedOrigins: [ORIGIN] })).status).toBe(200);

    const custom = (await create("custom", { fields: { a: "1", b: "2" }, headers: {} })).body.id;
    const half = await change(custom, { ...wider, config: { fields: { a: "1" } } });
    expect(half.body.details).toMatchObject([{ path: "config.fields.b" }]);

    const oauth2 = (await create("oauth2")).body.id;
    const moved = await change(oauth2, { config: { tokenEndpoint: "https://evil.example/token" } });
    expect(moved.body.details).toMatchObject([{ path: "config.clientSecret" }]);
  });

  it("keeps secrets that a patch does not name", async () => {
    const { id } = (await create("custom", { fields: { a: "1", b: "2" }, headers: { "x-a": "{{a}}{{b}}" } }))
      .body;
    expect((await change(id, { config: { fields: { b: null } } })).status).toBe(400);
    expect((await change(id, { config: { headers: { "x-a": "{{a}}" }, fields: { b: null } } })).status).toBe(
      200,
    );
    expect((await change(id, { config: { headers: { "x-b": "{{b}}" } } })).status).toBe(400);
  });

  it("tells who changed what, and no secret", async () => {
    const { id } = (await create("apiKey")).body;
    await change(id, { name: "Other", config: { value: "secret-2", prefix: "k " } });
    const { body } = await api.call("GET", `/audit?entityId=${id}`);
    expect(body.map(({ action, fields }: never) => ({ action, fields }))).toEqual(
      expect.arrayContaining([
        { action: "create", fields: [] },
        { action: "update", fields: ["config.prefix", "name", "config.value"] },
      ]),
    );
    expect(JSON.stringify([body, api.lines])).not.toContain("secret-");
  });

  it("of another organization is none", async () => {
    const { id } = (await create("bearer")).body;
    const stranger = api.as(await api.strangerKey());
    for (const [method, path] of [
      ["GET", ""],
      ["PUT", ""],
      ["DELETE", ""],
      ["POST", "/test"],
      ["GET", "/authorize"],
    ] as const) {
      const body = method === "GET" || method === "DELETE" ? undefined : {};
      expect((await stranger(method, `/connections/${id}${path}`, body)).status).toBe(404);
    }
  });

  it("whose sealed secrets were moved to another row does not open", async () => {
    const { db } = api.database;
    const [from, to] = [(await create("bearer")).body.id, (await create("bearer")).body.id];
    const { sealedSecrets } = await db
      .selectFrom("connections")
      .select("sealedSecrets")
      .where("id", "=", from)
      .executeTakeFirstOrThrow();
    await db.updateTable("connections").set({ sealedSecrets }).where("id", "=", to).execute();
    expect((await api.call("POST", `/connections/${to}/test`, {})).status).toBe(500);
  });
});
