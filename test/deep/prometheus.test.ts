import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { createTestStores, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { METRICS_TOKEN, readMetrics } from "../support/gateway-process.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { listenLocally } from "../support/local-server.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const CONFIG = join(import.meta.dirname, "../../config");
const ALERTS = join(CONFIG, "prometheus/alerts.yaml");
const read = (path: string): string => readFileSync(join(CONFIG, path), "utf8");

/** Returns the program's path, or `undefined` when it is not on the PATH. `.ci/tools` installs it. */
const find = (program: string): string | undefined =>
  (process.env.PATH ?? "")
    .split(":")
    .map((dir) => join(dir, program))
    .find((path) => existsSync(path));
const promtool = find("promtool");
const prometheus = find("prometheus");

describe("the alert rules", () => {
  it("pass the checks of promtool, and each alert fires on its test series and then clears", async (context) => {
    if (promtool === undefined) return context.skip("promtool is not on the PATH");
    const rules = await run(promtool, ["check", "rules", ALERTS]);
    expect(rules.stdout).toMatch(/SUCCESS: \d+ rules found/);
    const tests = await run(promtool, ["test", "rules", join(CONFIG, "prometheus/alerts.test.yaml")]);
    expect(tests.stdout).toContain("SUCCESS");
  });
});

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
}
const dashboard: Dashboard = JSON.parse(read("grafana/dashboard.json"));
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr: expr.replaceAll("$__rate_interval", "30s") })),
);
/** Queries of the table in the metrics page, which escapes each `|` with a backslash. */
const questions = [
  ...readFileSync(join(CONFIG, "../src/docs/metrics.md"), "utf8").matchAll(/^\| [^`|]+ \| `(.+)` \|$/gm),
].map(([, expr = ""]) => expr.replaceAll("\\|", "|"));

const skipReason = prometheus === undefined ? " (skipped: prometheus is not on the PATH)" : "";
describe.skipIf(prometheus === undefined)(`Prometheus that scrapes a gateway under load${skipReason}`, () => {
  const open = new AsyncDisposableStack();
  let gateway: TestGateway;
  let origin: string;
  afterAll(() => open.disposeAsync());

  beforeAll(async () => {
    const stores = open.use(await createTestStores());
    const receiver = open.use(await startOtlpReceiver());
    const settings = { INLET_ALLOW_NETWORKS: "127.0.0.0/8", OTEL_EXPORTER_OTLP_ENDPOINT: receiver.origin };
    gateway = open.use(await startTestGateway({ ...stores.env, ...settings }));
    open.use(await startLoad(gateway));
    origin = open.use(await startPrometheus(prometheus ?? "", gateway.origin)).origin;
  });

  interface Sample {
    readonly metric: Readonly<Record<string, string>>;
    readonly value: readonly [number, string];
  }
  async function query(expr: string): Promise<readonly Sample[]> {
    const response = await fetch(`${origin}/api/v1/query?${new URLSearchParams({ query: expr })}`);
    const answer = (await response.json()) as { data?: { result: Sample[] }; error?: string };
    if (answer.data === undefined) throw new Error(`${expr}: ${answer.error}`);
    return answer.data.result;
  }

  it("returns a result for every query of the Grafana dashboard", async () => {
    expect(queries.length).toBeGreaterThan(40);
    let unanswered: typeof queries = queries;
    // The metrics that are summed once a minute appear last.
    await until(
      async () => {
        const left = await Promise.all(
          unanswered.map(async (one) => ({ one, samples: await query(one.expr) })),
        );
        unanswered = left.flatMap(({ one, samples }) => (samples.length === 0 ? [one] : []));
        return unanswered.length === 0;
      },
      { everyMs: 1_000, ceilingMs: 240_000 },
    ).catch((error: unknown) => {
      throw new Error(`no result: ${JSON.stringify(unanswered, null, 1)}`, { cause: error });
    });
    console.info(`${queries.length} dashboard queries have a result`);
  });

  it("returns time series for the queries of all five questions in the documentation", async () => {
    expect(questions).toHaveLength(5);
    for (const question of questions) {
      // A healthy gateway may give no result, so the query is also run without its threshold, which must give one.
      const [base = ""] = question.split(/ > [\d.]+$/);
      await until(async () => (await query(base)).length > 0, { everyMs: 1_000 }).catch((error: unknown) => {
        throw new Error(`no result: ${base}`, { cause: error });
      });
      await query(question);
    }
  });

  it("stores the traces of deliveries and handler calls as exemplars", async () => {
    for (const name of ["inlet_hook_duration_seconds_bucket", "inlet_handler_duration_seconds_bucket"]) {
      const query = new URLSearchParams({ query: name, start: "0", end: String(Date.now()) });
      await until(async () => {
        const answer = await (await fetch(`${origin}/api/v1/query_exemplars?${query}`)).json();
        const { data = [] } = answer as { data?: { exemplars: { labels: Record<string, string> }[] }[] };
        const labels = data.flatMap(({ exemplars }) => exemplars.map((one) => one.labels));
        return labels.length > 0 && labels.every(({ trace_id = "" }) => /^[\da-f]{32}$/.test(trace_id));
      });
    }
  });

  it("runs the alert rules, and the gateway exports every metric that the rules and the dashboard name", async () => {
    const live = await readMetrics(gateway.origin);
    const names = [
      ...`${read("prometheus/alerts.yaml")}${read("grafana/dashboard.json")}`.matchAll(
        /\b((?:inlet|nodejs|process)_[a-z0-9_]+?)(?:_bucket|_sum|_count)?\b/g,
      ),
    ].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(60);
    // Only gateways with embedded servers export this metric.
    const expected = names.filter((name) => name !== "inlet_data_dir_free_ratio");
    const missing = expected.filter((name) => !live.includes(`# TYPE ${name} `));
    expect([...new Set(missing)]).toEqual([]);
    await until(async () => {
      const answer = await (await fetch(`${origin}/api/v1/rules`)).json();
      const { data } = answer as { data: { groups: { rules: { health: string }[] }[] } };
      const rules = data.groups.flatMap((group) => group.rules);
      return rules.length > 20 && rules.every(({ health }) => health === "ok");
    });
  });
});

async function startPrometheus(program: string, gateway: string) {
  await using starting = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "inlet-prometheus-"));
  starting.defer(() => rm(dir, { recursive: true, force: true }));
  const target = new URL(gateway).host;
  await copyFile(ALERTS, join(dir, "alerts.yaml"));
  const config = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: ["alerts.yaml"],
    scrape_configs: [
      {
        job_name: "inlet",
        authorization: { credentials: METRICS_TOKEN },
        static_configs: [{ targets: [target] }],
      },
    ],
  };
  // JSON is valid YAML.
  await writeFile(join(dir, "prometheus.yml"), JSON.stringify(config));
  const port = await freePort();
  const child = spawn(
    program,
    [
      `--config.file=${join(dir, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(dir, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
      "--enable-feature=exemplar-storage",
    ],
    { stdio: "ignore" },
  );
  const exited = once(child, "exit");
  starting.defer(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  const origin = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(`${origin}/-/ready`).catch(() => undefined))?.ok === true);
  const owned = starting.move();
  return { origin, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * Produces accepted and rejected deliveries, a stream that disconnects, polls, a failing handler, lagging readers, and a second
 * organization.
 */
async function startLoad({ origin, api }: TestGateway) {
  await using starting = new AsyncDisposableStack();
  const handler = starting.use(await startHandlerServer());
  handler.answers.set("/picky", (_, times) => ({ status: times === 1 ? 500 : 200 }));
  let sent = 0;
  const stream = starting.use(
    await startServer((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`id: ${++sent}\ndata: {"n":${sent}}\n\n`);
      setTimeout(() => response.end(), 500);
    }),
  );
  const table = starting.use(
    await startServer((_, response) => {
      const rows = Array.from({ length: 3 }, () => ({ id: `r${++sent}` }));
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ rows }));
    }),
  );
  /** Events of a provider whose webhook delivers only every other one. */
  const listed: { readonly id: string; readonly at: string }[] = [];
  const list = starting.use(
    await startServer((_, response) => {
      const body = JSON.stringify({ events: listed.slice(-100) });
      response.writeHead(200, { "content-type": "application/json" }).end(body);
    }),
  );
  const schema = { type: "object", required: ["id"], properties: { id: { type: "integer" } } };
  const channels = [
    {
      uid: "in",
      kind: "webhook",
      config: { expectEverySeconds: 86_400 },
      events: [{ type: "e", idPath: "$.id", schema }],
    },
    {
      uid: "signed",
      kind: "webhook",
      events: [{ type: "e" }],
      config: { verification: { scheme: "hmac", name: "x-signature" } },
    },
    {
      uid: "stream",
      kind: "sse",
      events: [{ type: "e" }],
      config: { url: stream.url, run: "always", reconnect: { initialMs: 100, maxMs: 200 } },
    },
    {
      uid: "table",
      kind: "polling",
      events: [{ type: "e" }],
      config: {
        request: { url: table.url },
        run: "always",
        itemsPath: "$.rows",
        itemId: "$.id",
        schedule: { intervalSeconds: 5 },
        discriminator: { by: "seenSet" },
        startAt: "earliest",
      },
    },
    { uid: "bell", kind: "webhook", config: { wakes: ["table"] }, events: [] },
    { uid: "gappy", kind: "webhook", config: {}, events: [{ type: "e", idPath: "$.id" }] },
    {
      uid: "gaps",
      kind: "polling",
      config: {
        reconciles: "gappy",
        settleSeconds: 0,
        run: "always",
        request: { url: list.url },
        schedule: { intervalSeconds: 5 },
        discriminator: { by: "timestamp", path: "$.at", lookBackSeconds: 2 },
        itemsPath: "$.events",
        itemId: "$.id",
        startAt: "earliest",
      },
    },
  ];
  interface App {
    readonly id: string;
    readonly channels: readonly { readonly id: string; readonly uid: string }[];
  }
  const install = async (key?: string): Promise<App> => {
    const call = async (path: string, body: object): Promise<App> => {
      if (key === undefined) return api<App>("POST", path, body);
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const response = await fetch(`${origin}/v1${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      if (!response.ok) throw new Error(await response.text());
      return (await response.json()) as App;
    };
    const own = key === undefined ? channels : channels.slice(0, 1);
    const { id: blueprintId } = await call("/blueprints", { title: "load", channels: own });
    return call("/apps/install", { blueprintId });
  };
  const app = await install();
  const other = await api<{ apiKey: { key: string } }>("POST", "/organizations", { name: "Other" });
  const theirs = await install(other.apiKey.key);
  for (const body of [{ handler: { url: handler.urlOf("/picky") } }, {}])
    await api("POST", `/apps/${app.id}/events/subscribe`, { eventUid: "in:*", ...body });
  const addressOf = (of: App, uid: string) =>
    `${origin}/hooks/${of.channels.find((one) => one.uid === uid)?.id}`;
  const post = async (url: string, body: unknown) => {
    const headers = { "content-type": "application/json" };
    await (await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })).arrayBuffer();
  };
  const stopping = new AbortController();
  const loop = (async () => {
    for (let id = 0; !stopping.signal.aborted; id++) {
      await post(addressOf(app, "in"), { id });
      await post(addressOf(app, "in"), { id: "not a number" });
      await post(addressOf(app, "signed"), { id });
      await post(addressOf(app, "bell"), {});
      const event = { id: `${id}`, at: new Date().toISOString() };
      listed.push(event);
      if (id % 2 === 0) await post(addressOf(app, "gappy"), event);
      await post(addressOf(theirs, "in"), { id, text: "x".repeat(1_000) });
      await post(addressOf(theirs, "in"), { id: `${id}` });
      await api("GET", "/apps");
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  starting.defer(async () => {
    stopping.abort();
    await loop;
  });
  const owned = starting.move();
  return { [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function startServer(listener: RequestListener) {
  const local = await listenLocally(createServer(listener));
  return { ...local, url: `${local.origin}/` };
}
