import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

interface Provider {
  readonly provider: string;
  readonly title: string;
  readonly authorizationEndpoint: string;
  readonly scopes: readonly string[];
  readonly authorizationParameters: Readonly<Record<string, string>>;
  readonly allowedOrigins: readonly string[];
  readonly redirectUri: string;
}

const CLIENT = { clientId: "inlet", clientSecret: "s-1" };
const create = (config: object, more: object = {}) =>
  api.call("POST", "/connections", { name: "x", kind: "oauth2", config, ...more });

describe("GET /oauth-providers", () => {
  it("lists at least 20 providers, each with HTTPS addresses and its documentation", async () => {
    const providers = await api.call.get("/oauth-providers?limit=200");
    expect(providers.length).toBeGreaterThanOrEqual(20);
    for (const { documentationUrl, authorizationEndpoint, tokenEndpoint, allowedOrigins, title } of providers)
      for (const url of [documentationUrl, authorizationEndpoint, tokenEndpoint, ...allowedOrigins])
        expect(url, title).toMatch(/^https:/);
    const names = providers.map(({ provider }: Provider) => provider);
    expect(names).toEqual([...new Set(names)].sort());
  });

  it("names providers with which a sign-in needs only a client id and a secret", async () => {
    const providers: Provider[] = await api.call.get("/oauth-providers?limit=200");
    for (const one of providers) {
      const origins = one.allowedOrigins.length > 0 ? {} : { allowedOrigins: ["https://acme.example"] };
      const { status, body } = await create({ provider: one.provider, ...CLIENT }, origins);
      expect(status, one.title).toBe(200);
      expect(body).toMatchObject({
        state: "needsReauth",
        config: { provider: one.provider, clientId: "inlet" },
        ...(one.allowedOrigins.length > 0 && { allowedOrigins: one.allowedOrigins }),
      });
      const url = new URL((await api.call.get(`/connections/${body.id}/authorize`)).url);
      expect(url.origin + url.pathname).toBe(one.authorizationEndpoint);
      expect(url.searchParams.get("scope")).toBe(one.scopes.length > 0 ? one.scopes.join(" ") : null);
      expect(Object.fromEntries(url.searchParams)).toMatchObject({
        ...one.authorizationParameters,
        redirect_uri: one.redirectUri,
        code_challenge_method: "S256",
      });
    }
  });
});

describe("a connection with a provider", () => {
  it("rejects an unknown provider, and requires origins of a provider without common ones", async () => {
    expect(await create({ provider: "nowhere", ...CLIENT })).toMatchObject({
      status: 400,
      body: { details: [{ path: "config.provider" }] },
    });
    expect(await create({ provider: "salesforce", ...CLIENT })).toMatchObject({
      status: 400,
      body: { details: [{ path: "allowedOrigins", message: expect.stringContaining("My Domain") }] },
    });
    expect(
      await create({ grant: "clientCredentials", tokenEndpoint: "https://a.example", ...CLIENT }),
    ).toMatchObject({ status: 400, body: { details: [{ path: "allowedOrigins" }] } });
    expect(await create({ tokenEndpoint: "https://a.example", ...CLIENT })).toMatchObject({
      status: 400,
      body: { details: expect.arrayContaining([expect.objectContaining({ path: "config.grant" })]) },
    });
  });

  it("requires the client secret again if the provider changes, because it is sent to another server", async () => {
    const { id } = (await create({ provider: "github", ...CLIENT })).body;
    const change = (config: object) => api.call("PUT", `/connections/${id}`, { config });
    expect(await change({ provider: "gitlab" })).toMatchObject({
      status: 400,
      body: { details: [{ path: "config.clientSecret" }] },
    });
    expect((await change({ provider: "gitlab", clientSecret: "s-2" })).status).toBe(200);
  });

  it("gets the origins of another provider, unless it has origins of its own", async () => {
    const { id } = (await create({ provider: "github", ...CLIENT })).body;
    const change = (provider: string, more: object = {}) =>
      api.call.put(`/connections/${id}`, { config: { provider, clientSecret: "s-2" }, ...more });
    expect(await change("gitlab")).toMatchObject({ allowedOrigins: ["https://gitlab.com"] });
    const own = { allowedOrigins: ["https://gitlab.example.com"] };
    expect(await change("gitlab", own)).toMatchObject(own);
    expect(await change("github")).toMatchObject(own);
  });
});
