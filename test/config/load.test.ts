import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { type Config, SETTING_LIST } from "../../src/config/schema.ts";
import type { Finding } from "../../src/lib/errors.ts";

const KEY = Buffer.alloc(32, 7);
const dir = mkdtempSync(join(tmpdir(), "inlet-config-"));
afterAll(() => rmSync(dir, { recursive: true }));

function read(env: Record<string, string>, file?: string): Config {
  const result = loadConfig(env, file);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

function findings(env: Record<string, string>, file?: string): readonly Finding[] {
  const result = loadConfig(env, file);
  return result.ok ? [] : result.error;
}

function fileOf(text: string): string {
  const file = join(dir, `${Math.random()}.env`);
  writeFileSync(file, text);
  return file;
}

describe("loadConfig", () => {
  it("applies the default of every setting", () => {
    expect(read({})).toEqual({
      port: 8080,
      processes: 1,
      backgroundProcesses: 0,
      otlpEndpoint: undefined,
      otlpHeaders: {},
      tracesSampler: "parentbased_always_on",
      tracesSamplerArg: 1,
      otelServiceName: "inlet",
      otelResourceAttributes: {},
      otelScheduleDelayMs: 5000,
      host: "127.0.0.1",
      dataDir: resolve("data"),
      roles: ["api", "hooks", "sources", "delivery"],
      apiRequestsPerMinute: 600,
      hookFastPath: true,
      maxHeaderBytes: 16_384,
      hookRequestsPerSecond: 1_000,
      sourceDeliveriesPerSecond: 1_000,
      pollConcurrency: 50,
      pollsPerOrigin: 10,
      pollsPerOrganization: 50,
      sipProviders: ["sip_provider_1", "sip_provider_2", "sip_provider_3"],
      topicMebibytesPerOrganization: undefined,
      rowsPerResource: 100_000,
      auditRetentionDays: 365,
      mcpWrites: false,
      mcpWebhookId: "event",
      metricsChannels: 100,
      trustProxy: [],
      allowNetworks: [],
      logLevel: "info",
      durabilityAsserted: false,
      redisUrls: [],
    });
  });

  it("parses every setting", () => {
    const config = read({
      INLET_PORT: "0",
      INLET_HOST: "::",
      INLET_DATA_DIR: "/srv/inlet",
      INLET_ROLES: "hooks, api",
      INLET_BASE_URL: "https://inlet.example/v1/",
      INLET_HOOKS_URL: "https://hooks.example",
      INLET_API_KEY: "a-key-of-sixteen-characters",
      INLET_OIDC_ISSUER: "https://login.example/",
      INLET_OIDC_AUDIENCE: "inlet",
      INLET_API_REQUESTS_PER_MINUTE: "60",
      INLET_HTTP_FAST_PATH: "off",
      INLET_MAX_HEADER_BYTES: "32768",
      INLET_HOOK_REQUESTS_PER_SECOND: "50",
      INLET_SOURCE_DELIVERIES_PER_SECOND: "70",
      INLET_POLL_CONCURRENCY: "20",
      INLET_POLLS_PER_ORIGIN: "2",
      INLET_POLLS_PER_ORGANIZATION: "5",
      INLET_SIP_PROVIDERS: "near, far,away",
      INLET_TOPIC_MEBIBYTES_PER_ORGANIZATION: "512",
      INLET_ROWS_PER_RESOURCE: "500",
      INLET_AUDIT_RETENTION_DAYS: "30",
      INLET_MASTER_KEY: KEY.toString("hex"),
      INLET_TRUST_PROXY: "10.0.0.0/8,fd00::/8,192.0.2.1",
      INLET_ALLOW_NETWORKS: "127.0.0.0/8",
      INLET_LOG_LEVEL: "warn",
      INLET_DRAIN_DELAY_SECONDS: "20",
      INLET_DURABILITY: "fsync",
      INLET_DURABILITY_ASSERTED: "1",
      INLET_METRICS_TOKEN: "metrics-token-of-mine",
      INLET_METRICS_LISTEN: "[::1]:9464",
      INLET_MCP_WRITES: "1",
      INLET_MCP_WEBHOOK_ID: "message",
      INLET_METRICS_CHANNELS: "20",
      OTEL_EXPORTER_OTLP_ENDPOINT: "https://otel.example/otlp/",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20t, x-team = events",
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.01",
      OTEL_SERVICE_NAME: "gateway",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=staging",
      OTEL_BSP_SCHEDULE_DELAY: "250",
      INLET_TRACE_URL: "https://tempo.example/explore?left=%22{traceId}%22#{traceId}",
      DATABASE_URL: "postgres://u:p@db.example/inlet?sslmode=require",
      INLET_PROCESSES: "4",
      REDIS_URL: "redis://a.example:6379,redis://b.example:6379",
    });
    expect(config).toEqual({
      port: 0,
      processes: 4,
      backgroundProcesses: 0,
      otlpEndpoint: "https://otel.example/otlp",
      otlpHeaders: { authorization: "Bearer t", "x-team": "events" },
      traceUrl: "https://tempo.example/explore?left=%22{traceId}%22#{traceId}",
      tracesSampler: "traceidratio",
      tracesSamplerArg: 0.01,
      otelServiceName: "gateway",
      otelScheduleDelayMs: 250,
      otelResourceAttributes: { "deployment.environment.name": "staging" },
      host: "::",
      dataDir: "/srv/inlet",
      roles: ["hooks", "api"],
      baseUrl: "https://inlet.example/v1",
      hooksUrl: "https://hooks.example",
      apiKey: "a-key-of-sixteen-characters",
      oidcIssuer: "https://login.example/",
      oidcAudience: "inlet",
      apiRequestsPerMinute: 60,
      hookFastPath: false,
      maxHeaderBytes: 32_768,
      hookRequestsPerSecond: 50,
      sourceDeliveriesPerSecond: 70,
      pollConcurrency: 20,
      pollsPerOrigin: 2,
      pollsPerOrganization: 5,
      sipProviders: ["near", "far", "away"],
      topicMebibytesPerOrganization: 512,
      rowsPerResource: 500,
      auditRetentionDays: 30,
      masterKey: KEY,
      trustProxy: ["10.0.0.0/8", "fd00::/8", "192.0.2.1/32"],
      allowNetworks: ["127.0.0.0/8"],
      logLevel: "warn",
      drainDelaySeconds: 20,
      durability: "fsync",
      durabilityAsserted: true,
      metricsToken: "metrics-token-of-mine",
      metricsListen: { host: "::1", port: 9464 },
      mcpWrites: true,
      mcpWebhookId: "message",
      metricsChannels: 20,
      databaseUrl: "postgres://u:p@db.example/inlet?sslmode=require",
      redisUrls: ["redis://a.example:6379", "redis://b.example:6379"],
    });
  });

  it.each([
    [{ INLET_PROCESSES: "2", INLET_BACKGROUND_PROCESSES: "2" }, "must be less than INLET_PROCESSES"],
    [
      { INLET_PROCESSES: "2", INLET_BACKGROUND_PROCESSES: "1", INLET_ROLES: "hooks,api" },
      "needs one of the roles sources, delivery",
    ],
  ])("rejects %j, because a process would have no role or no connection", (env, message) => {
    expect(loadConfig(env)).toMatchObject({
      ok: false,
      error: [{ path: "INLET_BACKGROUND_PROCESSES", message: expect.stringContaining(message) }],
    });
  });

  it("starts one process per core with INLET_PROCESSES=auto", () => {
    expect(read({ INLET_PROCESSES: "auto" }).processes).toBe(availableParallelism());
  });

  it("returns the errors of all invalid settings at once, each with the name of the setting", () => {
    const wrong = {
      INLET_PORT: "65536",
      INLET_ROLES: "api,hook",
      INLET_BASE_URL: "inlet.example",
      INLET_HOOKS_URL: "https://user:password@hooks.example",
      INLET_API_KEY: "short",
      INLET_OIDC_ISSUER: "login.example",
      INLET_API_REQUESTS_PER_MINUTE: "0",
      INLET_HOOK_REQUESTS_PER_SECOND: "many",
      INLET_SIP_PROVIDERS: "near,far,near",
      INLET_MASTER_KEY: "c2hvcnQ=",
      INLET_TOPIC_MEBIBYTES_PER_ORGANIZATION: "0",
      INLET_ROWS_PER_RESOURCE: "0",
      INLET_AUDIT_RETENTION_DAYS: "0",
      INLET_TRUST_PROXY: "10.0.0.0/33",
      INLET_ALLOW_NETWORKS: "localhost",
      INLET_LOG_LEVEL: "loud",
      INLET_DURABILITY: "always",
      INLET_DURABILITY_ASSERTED: "yes",
      INLET_METRICS_TOKEN: "with space in the token",
      INLET_METRICS_LISTEN: "9464",
      DATABASE_URL: "mysql://db.example/inlet",
      REDIS_URL: "redis://a.example,,redis://b.example",
    };
    expect(findings(wrong).map(({ path }) => path)).toEqual([...Object.keys(wrong), "INLET_OIDC_AUDIENCE"]);
  });

  it("rejects an issuer without an audience", () => {
    const issuer = { INLET_OIDC_ISSUER: "https://login.example" };
    expect(findings(issuer).map(({ path }) => path)).toEqual(["INLET_OIDC_AUDIENCE"]);
    expect(findings({ ...issuer, INLET_OIDC_AUDIENCE: "inlet" })).toEqual([]);
  });

  it.each([
    "near,far",
    "a,b,c,d",
    "a,b,a",
    "A,b,c",
    "a,b,",
  ])("rejects INLET_SIP_PROVIDERS=%s, because it must contain three different names", (names) => {
    expect(findings({ INLET_SIP_PROVIDERS: names })).toMatchObject([{ path: "INLET_SIP_PROVIDERS" }]);
  });

  it("rejects an unknown INLET_ variable and suggests the most similar known name", () => {
    expect(findings({ INLET_PROT: "1", INLET_WHATEVER: "1", PORT: "1" })).toEqual([
      { path: "INLET_PROT", message: "is not a setting; did you mean INLET_PORT?" },
      { path: "INLET_WHATEVER", message: "is not a setting" },
    ]);
  });

  it("ignores the variables that Kubernetes sets for a service named inlet", () => {
    expect(
      findings({
        INLET_SERVICE_HOST: "10.0.0.1",
        INLET_SERVICE_PORT: "80",
        INLET_PORT_80_TCP_ADDR: "10.0.0.1",
      }),
    ).toEqual([]);
    expect(findings({ INLET_PORT: "tcp://10.0.0.1:80" })[0]?.message).toContain("enableServiceLinks");
  });

  it.each([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "otel:4317"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "no pair"],
    ["OTEL_RESOURCE_ATTRIBUTES", "a=%zz"],
    ["OTEL_TRACES_SAMPLER", "sometimes"],
    ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
    ["OTEL_BSP_SCHEDULE_DELAY", "0"],
    ["INLET_TRACE_URL", "https://tempo.example/trace/"],
    ["INLET_TRACE_URL", "https://{traceId}.tempo.example/"],
    ["INLET_TRACE_URL", "https://u:p@tempo.example/{traceId}"],
    ["INLET_TRACE_URL", "javascript:alert('{traceId}')"],
  ])("rejects an invalid %s", (name, value) => {
    expect(findings({ [name]: value })).toEqual([
      { path: name, message: expect.stringContaining("must be") },
    ]);
  });

  it("never quotes a secret in an error", () => {
    const secret = "s3cr:t";
    const env = Object.fromEntries(SETTING_LIST.filter((s) => s.secret).map((s) => [s.name, secret]));
    const found = findings(env);
    expect(found).toHaveLength(7);
    expect(JSON.stringify(found)).not.toContain(secret);
  });

  it("rejects DATABASE_URL without INLET_MASTER_KEY", () => {
    expect(findings({ DATABASE_URL: "postgres://db.example/inlet" }).map(({ path }) => path)).toEqual([
      "INLET_MASTER_KEY",
    ]);
  });

  it("prefers environment variables over the settings file, and treats an empty variable as unset", () => {
    const file = fileOf("# settings\nINLET_PORT=9000\nINLET_HOST='::1'\nINLET_LOG_LEVEL=debug\n");
    const config = read({ INLET_PORT: "9001", INLET_LOG_LEVEL: "" }, file);
    expect(config).toMatchObject({ port: 9001, host: "::1", logLevel: "debug" });
  });

  it("reports a missing or invalid settings file", () => {
    const file = fileOf("INLET_PORT=x\nREDIS_ULR=redis://a.example\n");
    expect(findings({}, file)).toEqual([
      { path: "REDIS_ULR", message: "is not a setting; did you mean REDIS_URL?" },
      { path: "INLET_PORT", message: 'must be a port number from 0 to 65535, not "x"' },
    ]);
    expect(findings({}, join(dir, "absent"))[0]?.message).toContain("ENOENT");
  });
});
