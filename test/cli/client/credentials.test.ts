import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { findBaseUrl, writeCredentials } from "../../../src/cli/client/credentials.ts";

const folder = await mkdtemp(join(tmpdir(), "inlet-credentials-"));
afterAll(() => rm(folder, { recursive: true }));

it("calls the gateway of --url, INLET_URL or inlet login, and otherwise that of this machine at INLET_PORT or 8080", async () => {
  const env = { XDG_CONFIG_HOME: folder };
  expect(await findBaseUrl(env)).toBe("http://127.0.0.1:8080/v1");
  expect(await findBaseUrl({ ...env, INLET_PORT: "9123" })).toBe("http://127.0.0.1:9123/v1");
  await writeCredentials(env, { baseUrl: "https://stored.example/v1", apiKey: "ik_1" });
  const stored = { ...env, INLET_PORT: "9123" };
  expect(await findBaseUrl(stored)).toBe("https://stored.example/v1");
  const named = { ...stored, INLET_URL: "https://named.example" };
  expect(await findBaseUrl(named)).toBe("https://named.example/v1");
  expect(await findBaseUrl(named, "https://option.example")).toBe("https://option.example/v1");
});
