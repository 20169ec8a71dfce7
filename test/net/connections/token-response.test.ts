import { describe, expect, it } from "vitest";
import { readTokenResponse } from "../../../src/net/connections/token-response.ts";

const OPTIONS = { nowMs: 0, tokenTypes: [], redact: (text: string) => text.replaceAll("hush", "***") };
const read = (body: unknown, status = 200, tokenTypes: readonly string[] = []) =>
  readTokenResponse(
    { status, text: typeof body === "string" ? body : JSON.stringify(body) },
    { ...OPTIONS, tokenTypes },
  );
const failureOf = (body: unknown, status: number): unknown => {
  try {
    return read(body, status);
  } catch (error) {
    return error;
  }
};

describe("the response of a token endpoint", () => {
  const TOKENS = { access_token: "a", refresh_token: "r" };

  it.each([
    ["has no token type", TOKENS],
    ["has a token type in capitals", { ...TOKENS, token_type: "BEARER" }],
    ["has nulls", { ...TOKENS, token_type: null, expires_in: null, scope: null, id_token: null }],
    ["has an empty token type", { ...TOKENS, token_type: "" }],
    ["has a scope that is a list", { ...TOKENS, token_type: "bearer", scope: ["a"] }],
    ["has a lifetime that is no number", { ...TOKENS, expires_in: "never" }],
    ["has the lifetime 0 for a token that does not expire", { ...TOKENS, expires_in: 0 }],
    ["has a negative lifetime", { ...TOKENS, expires_in: -1 }],
    ["has white space around the tokens", { access_token: " a\n", refresh_token: "r " }],
    ["has an error without a value", { ...TOKENS, error: null, error_description: "" }],
    ["is a form", "access_token=a&refresh_token=r&scope=x&token_type=bearer\n"],
  ])("is accepted if it %s", (_, body) => {
    const tokens = { accessToken: "a", refreshToken: "r", renewAtMs: undefined };
    for (const status of [200, 201, 203]) expect(read(body, status)).toEqual({ kind: "tokens", tokens });
  });

  it.each([
    [600, 540_000],
    ["600", 540_000],
    ["600.5", 540_500],
    [100, 80_000],
  ])("sets the renewal of a token with the lifetime %j to %i ms", (expires_in, renewAtMs) => {
    expect(read({ ...TOKENS, expires_in })).toMatchObject({ tokens: { renewAtMs } });
  });

  it.each([null, "", 5, undefined])("has no new refresh token if it contains %j", (refresh_token) => {
    expect(read({ access_token: "a", refresh_token })).toMatchObject({ tokens: { refreshToken: undefined } });
  });

  it.each([
    ["an unknown token type", { ...TOKENS, token_type: "mac" }, '"mac", not bearer'],
    ["no access token", { refresh_token: "r" }, "no access token"],
    ["the access token null", { refresh_token: "r", access_token: null }, "no access token"],
    ["an access token that no header can carry", { ...TOKENS, access_token: "a\nb" }, "header"],
  ])("with %s is rejected without losing its refresh token", (_, body, reason) => {
    expect(read(body)).toEqual({
      kind: "refused",
      code: "unusable_token",
      message: expect.stringContaining(reason),
      refreshToken: "r",
    });
  });

  it.each([
    "bot",
    "BearerToken",
  ])("is accepted with the token type %s if the settings allow it", (token_type) => {
    expect(read({ ...TOKENS, token_type })).toMatchObject({ kind: "refused" });
    expect(read({ ...TOKENS, token_type }, 200, [token_type.toUpperCase()])).toMatchObject({
      kind: "tokens",
    });
  });

  it.each([
    [{ error: "invalid_grant" }, 400, "dead", "invalid_grant"],
    [{ error: "bad_refresh_token" }, 200, "dead", "bad_refresh_token"],
    [{ ok: false, error: "invalid_refresh_token" }, 200, "dead", "invalid_refresh_token"],
    ["error=bad_refresh_token&error_description=old", 200, "dead", "bad_refresh_token"],
    [{ error: "invalid_client" }, 401, "refused", "invalid_client"],
    [{ error: "<b>" }, 400, "refused", "unknown_error"],
  ])("with the error %j and status %i is a rejection of the kind %s", (body, status, kind, code) => {
    expect(read(body, status)).toMatchObject({ kind, code });
  });

  it("is described by its status, its error and its description, without the secrets of the request", () => {
    const body = { error: "invalid_client", error_description: "hush\nis wrong." };
    expect(read(body, 401)).toMatchObject({
      message: expect.stringMatching(/status 401 and invalid_client: \*\*\* is wrong\. Check the client id/),
    });
  });

  it.each([
    [{ error: "server_error", error_description: "down" }, 400, "status 400 and server_error: down", false],
    [{ error: { code: "x", message: "no" } }, 403, "status 403 and x: no", false],
    [{ message: "no" }, 500, "status 500 and no", true],
    ["<html>", 404, "status 404 and no OAuth error", false],
    ["<html>", 502, "status 502 and no OAuth error", true],
    ["", 200, "status 200 and no OAuth error", true],
    ["{", 200, "status 200 and no OAuth error", true],
    ["null", 200, "status 200 and no OAuth error", true],
    [["a"], 200, "status 200 and no OAuth error", true],
  ])("with the body %j and status %i fails without a verdict", (body, status, message, mayHaveIssued) => {
    expect(failureOf(body, status)).toMatchObject({
      name: "OutboundError",
      code: "protocol",
      message: `the token endpoint responded with ${message}`,
      mayHaveIssued,
    });
  });
});
