import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { publicUrls } from "../../src/config/public-urls.ts";

describe("publicUrls", () => {
  it.each([
    [{}, "http://127.0.0.1:81/v1", "http://127.0.0.1:81"],
    [{ INLET_HOST: "0.0.0.0" }, "http://127.0.0.1:81/v1", "http://127.0.0.1:81"],
    [{ INLET_HOST: "::" }, "http://[::1]:81/v1", "http://[::1]:81"],
    [{ INLET_BASE_URL: "https://a.example" }, "https://a.example/v1", "https://a.example"],
    [{ INLET_BASE_URL: "https://a.example/in/v1" }, "https://a.example/in/v1", "https://a.example/in"],
    [{ INLET_HOOKS_URL: "https://h.example/" }, "http://127.0.0.1:81/v1", "https://h.example"],
  ])("returns URLs that a client can open for %o", (env, baseUrl, hooksUrl) => {
    const loaded = loadConfig(env);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
    expect(publicUrls(loaded.value, 81)).toEqual({ baseUrl, hooksUrl });
  });
});
