import { expect, it } from "vitest";
import { maskSecretValues } from "../../src/verify/hidden-values.ts";

it.each([
  "x-gitlab-token",
  "x-goog-channel-token",
  "x-amz-security-token",
  "x-vault-token",
  "x-telegram-bot-api-secret-token",
  "x-functions-key",
  "ocp-apim-subscription-key",
  "x-api_key",
  "access_token",
  "clientSecret",
  "x-user-password",
  "x-session-id",
  "x-forwarded-authorization",
  "x-auth",
])("a value named %s is masked for display", (name) => {
  expect(maskSecretValues({ [name]: "v", other: ["a"] })).toEqual({ [name]: "***", other: ["a"] });
});

it.each([
  "x-github-event",
  "x-author",
  "idempotency-key",
  "x-kafka-key",
  "x-request-id",
  "webhook-signature",
  "keyword",
  "x-tokenizer",
])("a value named %s is shown", (name) => {
  expect(maskSecretValues({ [name]: "v" })).toEqual({ [name]: "v" });
});
