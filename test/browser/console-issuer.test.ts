import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestConsole, type TestConsole } from "../support/console.ts";
import { freePort } from "../support/free-port.ts";
import { type OAuthProvider, startOAuthProvider } from "../support/oauth-provider.ts";

const AUDIENCE = "https://inlet.example/api";

let provider: OAuthProvider;
let console: TestConsole;
let organizationId: string;
beforeAll(async () => {
  const port = await freePort();
  const redirectUri = `http://127.0.0.1:${port}/console/callback`;
  provider = await startOAuthProvider({
    redirectUri,
    configuration: {
      clients: [
        {
          client_id: "console",
          token_endpoint_auth_method: "none",
          redirect_uris: [redirectUri],
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
        },
      ],
      clientBasedCORS: () => true,
      features: {
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => true,
          getResourceServerInfo: (_, resource) => ({
            scope: "",
            audience: resource,
            accessTokenFormat: "jwt",
            accessTokenTTL: 600,
          }),
        },
      },
    },
  });
  console = await startTestConsole({
    INLET_PORT: String(port),
    INLET_OIDC_ISSUER: provider.issuer,
    INLET_OIDC_AUDIENCE: AUDIENCE,
    INLET_OIDC_CONSOLE_CLIENT_ID: "console",
  });
  const { api } = console.gateway;
  const account = await api<{ id: string }>("POST", "/iam/accounts", { name: "A person", status: "active" });
  await api("POST", "/iam/identities", {
    accountId: account.id,
    provider: provider.issuer,
    identifier: "person",
  });
  const memberships = await api<readonly { id: string; accountId: string }[]>(
    "GET",
    "/iam/memberships?limit=200",
  );
  const own = memberships.find(({ accountId }) => accountId === account.id);
  await api("PUT", `/iam/memberships/${own?.id}`, { permissions: ["apps.read"] });
  organizationId = (await api<{ organization: { id: string } }>("GET", "/auth/whoami")).organization.id;
});
afterAll(async () => {
  await console?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
});

it("a user signs in at an OpenID Connect issuer with an authorization code and PKCE, and returns to the address opened first", async () => {
  await using opened = await console.open("/apps?from=a-link", { key: null });
  const { page, complaints } = opened;
  const sent: string[] = [];
  page.on("request", (request) => void sent.push(request.url()));
  await page.getByRole("button", { name: `Continue with ${new URL(provider.issuer).host}` }).click();
  // The token names no organization, so the console asks for one.
  await page.getByLabel("Organization").fill(organizationId);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Apps", level: 1 }).waitFor();
  expect(page.url()).toBe(`${console.gateway.origin}/console/apps?from=a-link`);
  await page.getByText("A person").waitFor();
  // The membership only has the permission apps.read.
  expect(await page.getByRole("link", { name: "Blueprints" }).count()).toBe(0);

  const asked = new URL(sent.find((url) => url.startsWith(`${provider.issuer}/auth?`)) ?? "");
  expect(asked.searchParams.get("code_challenge_method")).toBe("S256");
  expect(asked.searchParams.get("state")).toMatch(/.{20}/);
  const kept: string = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])");
  // The stored access token is Inlet's own. The tokens of the issuer are only in memory.
  const issuers = [...kept.matchAll(/eyJ[\w-]+\.(eyJ[\w-]+)\./g)].map(
    ([, payload = ""]) => JSON.parse(Buffer.from(payload, "base64url").toString()).iss,
  );
  expect(issuers).toEqual(["inlet"]);
  expect(kept).not.toContain("verifier");
  const others = complaints.splice(0).filter((one) => !one.startsWith(`requested ${provider.issuer}`));
  // The first token request names no organization, so the API rejects it with 400.
  expect(others.filter((one) => !one.includes("400"))).toEqual([]);
});

it("the console rejects a sign-in callback if the sign-in was not started in the same window", async () => {
  await using opened = await console.open("/callback?code=stolen&state=other", { key: null });
  const { page } = opened;
  await expect.poll(() => page.getByRole("alert").textContent()).toContain("not started in this window");
  await page.getByRole("link", { name: "Start again" }).click();
  await page.getByLabel("API key").waitFor();
});
