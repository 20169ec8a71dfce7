import type { Schemas } from "../../api/client.ts";

export const KIND_NAMES: Readonly<Record<string, string>> = {
  apiKey: "API key",
  basic: "User name and password",
  bearer: "Bearer token",
  oauth2: "OAuth 2.0",
  custom: "Custom headers and parameters",
};

export const STATE_NAMES: Readonly<Record<Schemas["Connection"]["state"], string>> = {
  ok: "ready",
  needsReauth: "sign-in needed",
  error: "rejected",
};

export const GRANT_NAMES: Readonly<Record<string, string>> = {
  authorizationCode: "A person signs in",
  clientCredentials: "Client credentials",
  refreshToken: "Refresh token",
};

export const CLIENT_AUTHENTICATION_NAMES: Readonly<Record<string, string>> = {
  client_secret_basic: "Client secret in the header",
  client_secret_post: "Client secret in the body",
  none: "No client secret",
};
