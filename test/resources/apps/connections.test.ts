import { describe, expect, it } from "vitest";
import { sealConnectionSecrets } from "../../../src/data/connections/connections.ts";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

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

const draft = (kind: keyof typeof KINDS, config: object = KINDS[kind], origins = [ORIGIN]) => ({
  name: "Example",
  kind,
  config,
  allowedOrigins: origins,
});
const create = (...args: Parameters<typeof draft>) => api.call.post("/connections", draft(...args));
const change = (id: string, patch: object) => api.call.put(`/connections/${id}`, patch);
const refusal = (id: string, patch: object) => api.call.expectRejection("PUT", `/connections/${id}`, patch);

describe("a connection", () => {
  it.each(
    Object.keys(KINDS) as (keyof typeof KINDS)[],
  )("never returns its secret, and stores the secret encrypted (kind: %s)", async (kind) => {
    const made = await create(kind);
    expect(made).toMatchObject({ kind, name: "Example", state: "ok", lastUsedAt: null });
    const { id } = made;
    const path = `/connections/${id}`;
    const changed = await api.call.put(path, { name: "Renamed" });
    expect(changed.name).toBe("Renamed");
    const answers = [made, changed, await api.call.get(path), await api.call.get("/connections")];
    expect(JSON.stringify(answers)).not.toContain("secret-1");
    const rows = await api.database.db.selectFrom("connections").selectAll().where("id", "=", id).execute();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain("secret-1");
    expect(await api.call.delete(path)).toEqual({ id });
    expect((await api.call("GET", path)).status).toBe(404);
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
    ["config.path", "custom", { fields: { key: "a" }, path: "bot{{key}}" }],
    ["config.path", "custom", { fields: { key: "a" }, path: "/bot{{other}}" }],
    ["config.path", "custom", { fields: { key: "a?b" }, path: "/{{key}}" }],
    ["config.path", "custom", { fields: { key: ".." }, path: "/a/{{key}}" }],
    ["config.issuer", "oauth2", { grant: "clientCredentials", clientId: "a", clientSecret: "b" }],
    ["config.clientSecret", "oauth2", { ...KINDS.oauth2, clientSecret: undefined }],
    ["config.refreshToken", "oauth2", { ...KINDS.oauth2, grant: "refreshToken" }],
    ["config.clientAuthentication", "oauth2", { ...KINDS.oauth2, clientAuthentication: "none" }],
    ["config.tokenParameters.client_id", "oauth2", { ...KINDS.oauth2, tokenParameters: { client_id: "b" } }],
    ["config.tokenEndpoint", "oauth2", { ...KINDS.oauth2, tokenEndpoint: "https://a:b@id.example.com/" }],
  ] as const)("is rejected with an error at %s if the kind is %s and the config is %j", async (path, kind, config) => {
    const { status, paths } = await api.call.expectRejection("POST", "/connections", draft(kind, config));
    expect(status).toBe(400);
    expect(paths).toContain(path);
  });

  it.each([
    "api.example.com",
    "https://api.example.com/path",
    "https://api.example.com?x",
    "https://a@api.example.com",
    "ftp://api.example.com",
    "*",
  ])("is rejected if %s is one of its allowed origins", async (origin) => {
    const body = draft("bearer", KINDS.bearer, [origin]);
    expect(await api.call.expectRejection("POST", "/connections", body)).toMatchObject({
      status: 400,
      paths: ["allowedOrigins[0]"],
    });
  });

  it("returns its allowed origins in normalized form and without duplicates", async () => {
    const made = await create("bearer", KINDS.bearer, ["HTTPS://API.example.com:443/", ORIGIN]);
    expect(made.allowedOrigins).toEqual([ORIGIN]);
  });

  it("requires its secret again when a change would send the secret to more origins", async () => {
    const wider = { allowedOrigins: [ORIGIN, "https://evil.example"] };
    const bearer = (await create("bearer")).id;
    expect(await refusal(bearer, wider)).toMatchObject({ status: 400, paths: ["config.token"] });
    const elsewhere = { allowedOrigins: ["https://evil.example"] };
    expect(await refusal(bearer, elsewhere)).toMatchObject({ status: 400, paths: ["config.token"] });
    await change(bearer, { ...wider, config: { token: "secret-2" } });
    await change(bearer, { allowedOrigins: [ORIGIN] });

    const custom = (await create("custom", { fields: { a: "1", b: "2" }, headers: {} })).id;
    expect(await refusal(custom, { ...wider, config: { fields: { a: "1" } } })).toMatchObject({
      paths: ["config.fields.b"],
    });

    const oauth2 = (await create("oauth2")).id;
    const moved = { config: { tokenEndpoint: "https://evil.example/token" } };
    expect(await refusal(oauth2, moved)).toMatchObject({ paths: ["config.clientSecret"] });
  });

  it("keeps secrets that a patch does not mention, and rejects a patch that removes a secret which a header still uses", async () => {
    const config = { fields: { a: "1", b: "2" }, headers: { "x-a": "{{a}}{{b}}" } };
    const { id } = await create("custom", config);
    expect(await refusal(id, { config: { fields: { b: null } } })).toMatchObject({ status: 400 });
    await change(id, { config: { headers: { "x-a": "{{a}}" }, fields: { b: null } } });
    expect(await refusal(id, { config: { headers: { "x-b": "{{b}}" } } })).toMatchObject({ status: 400 });
  });

  it("is recorded in the audit log and in the gateway's log without its secrets", async () => {
    const { id } = await create("apiKey");
    await change(id, { name: "Other", config: { value: "secret-2", prefix: "k " } });
    const notes = await api.call.get(`/audit?entityId=${id}`);
    expect(notes.map(({ action, fields }: never) => ({ action, fields }))).toEqual(
      expect.arrayContaining([
        { action: "create", fields: [] },
        { action: "update", fields: ["config.prefix", "name", "config.value"] },
      ]),
    );
    expect(JSON.stringify([notes, api.lines])).not.toContain("secret-");
  });

  it("rejects an encrypted secret that was copied from another connection's database row", async () => {
    const { db } = api.database;
    const [from, to] = [(await create("bearer")).id, (await create("bearer")).id];
    const { sealedSecrets } = await db
      .selectFrom("connections")
      .select("sealedSecrets")
      .where("id", "=", from)
      .executeTakeFirstOrThrow();
    await db.updateTable("connections").set({ sealedSecrets }).where("id", "=", to).execute();
    expect((await api.call("POST", `/connections/${to}/test`, {})).status).toBe(500);
  });
});

describe("a secret with surrounding white space", () => {
  const message = "must not begin or end with white space; remove it";

  it.each([
    ["config.value", "apiKey", { name: "key", in: "query", value: "secret " }],
    ["config.password", "basic", { username: "inlet", password: "secret\n" }],
    ["config.clientSecret", "oauth2", { ...KINDS.oauth2, clientSecret: "\tsecret" }],
    ["config.fields.key", "custom", { fields: { key: "secret\u00A0" }, query: { k: "{{key}}" } }],
  ] as const)("is rejected in a new connection (%s)", async (path, kind, config) => {
    const { body, status } = await api.call("POST", "/connections", draft(kind, config));
    expect({ status, details: body.details }).toEqual({ status: 400, details: [{ path, message }] });
  });

  it("is rejected in a change, but stays if it is already stored", async () => {
    const { id } = await create("basic");
    expect(await refusal(id, { config: { password: " other" } })).toMatchObject({
      status: 400,
      paths: ["config.password"],
    });
    const sealedSecrets = sealConnectionSecrets(api.keyring, id, { password: "old " });
    await api.database.db.updateTable("connections").set({ sealedSecrets }).where("id", "=", id).execute();
    expect(await change(id, { config: { username: "other" } })).toMatchObject({
      config: { username: "other" },
    });
  });
});
