import { execFile, spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runSetUp } from "../../src/cli/apply-set-up.ts";
import { loadConfig } from "../../src/config/load.ts";
import { createLog } from "../../src/log.ts";
import { type GivenChannel, givenChannel } from "../support/channels.ts";
import { freePort } from "../support/free-port.ts";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { listenLocally } from "../support/local-server.ts";
import { startStreamServer } from "../support/stream-server.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
const EXAMPLES = join(ROOT, "config/examples");

const gateway = givenGateway({ INLET_ALLOW_NETWORKS: "127.0.0.0/8" });
let dir: string;
let channel: GivenChannel;

/** Copies the examples, and installs their packages from this repository. */
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "inlet-examples-"));
  await cp(EXAMPLES, dir, { recursive: true });
  const { dependencies } = JSON.parse(await readFile(join(EXAMPLES, "package.json"), "utf8"));
  const consumer = join(dir, "node_modules/inlet-consumer");
  await mkdir(consumer, { recursive: true });
  const pack = await run(process.execPath, ["config/package/pack-consumer.ts", dir], { cwd: ROOT });
  await run("tar", ["-xf", pack.stdout.trim(), "--strip-components=1", "-C", consumer]);
  for (const name of [...Object.keys(dependencies), "ioredis", "cluster-key-slot"]) {
    if (name === "inlet-consumer") continue;
    const target = join(dir, "node_modules", name);
    await mkdir(dirname(target), { recursive: true });
    await symlink(join(ROOT, "node_modules", name), target);
  }
  channel = await givenChannel(gateway, {
    uid: "inbox",
    config: {},
    events: [{ type: "order", idPath: "$.id" }],
  });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** Starts an example. Its disposal stops it, and fails if it does not stop. */
function startExample(file: string, env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [file], {
    cwd: dir,
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk;
    });
  }
  // Unlike `exit`, `close` follows all output.
  const ended = new Promise((resolve) => child.once("close", resolve));
  return {
    output: () => output,
    ended,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

async function send(id: string): Promise<void> {
  const response = await fetch(`${gateway.origin}${channel.hookPath}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ id, total: 7 }),
  });
  expect(response.status).toBe(200);
}

const subscribe = (body: object) =>
  gateway.api<{ id: string; handler?: { secret: string } }>(
    "POST",
    `${channel.appPath}/events/subscribe`,
    body,
  );

it("the example of a consumer prints each event of its subscription", async () => {
  const { id } = await subscribe({ eventUid: "*" });
  await using consumer = startExample("consumer.ts", {
    REDIS_URL: gateway.stores.env.REDIS_URL ?? "",
    SUBSCRIPTION: id,
  });
  await send("c-1");
  await until(() => consumer.output().includes("c-1"));
  expect(consumer.output()).toContain('order c-1 {"id":"c-1","total":7} attempt 1');
});

it.each([
  "handler-hono.ts",
  "handler-express.ts",
])("the example %s accepts signed events, and rejects unsigned requests", async (file) => {
  const PORT = String(await freePort());
  const url = `http://127.0.0.1:${PORT}/events`;
  const { handler } = await subscribe({ eventUid: "*", handler: { url } });
  await using server = startExample(file, { PORT, HANDLER_SECRET: handler?.secret ?? "" });
  await until(() => server.output().includes(url));
  expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(401);
  const id = `from ${file}`;
  await send(id);
  await until(() => server.output().includes(id));
  expect(server.output()).toContain(`{"id":"${id}","total":7}`);
});

it("the example of an agent lists the tools and the open problems", async () => {
  await using agent = startExample("agent.ts", { INLET_URL: gateway.origin, INLET_API_KEY: API_KEY });
  await agent.ended;
  expect(agent.output()).toMatch(/^tools: .*list_problems/);
  expect(agent.output()).not.toContain("Error");
});

describe("the example configurations", () => {
  const env = { GITHUB_WEBHOOK_SECRET: "known-to-both-sides" };
  const apply = async (settings: Readonly<Record<string, string>>, file: string): Promise<string> => {
    const loaded = loadConfig(settings);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
    let printed = "";
    const given = {
      log: createLog({ level: "silent" }),
      signal: new AbortController().signal,
      async print(text: string) {
        printed += text;
      },
    };
    await runSetUp(loaded.value, { file, planOnly: false, isJson: false, env }, given);
    return printed;
  };

  it("can be applied, all to one gateway, and change nothing when they are applied again", async () => {
    await using stores = await createTestStores();
    // Creates the organization. A running gateway would open the streams.
    await (await startTestGateway(stores.env))[Symbol.asyncDispose]();
    const files = (await readdir(EXAMPLES)).filter((file) => file.endsWith(".setup.json"));
    expect(files.length).toBeGreaterThan(2);
    for (const file of files) await apply(stores.env, join(EXAMPLES, file));
    for (const file of files)
      expect(await apply(stores.env, join(EXAMPLES, file))).toMatch(/Done: 0 changed\.\n$/);
  });

  /** Applies an example to a new gateway, after changing its text. Returns the ids of the events in the app, once there are some. */
  async function eventsOf(file: string, uid: string, change: (text: string) => string, count: number) {
    await using stores = await createTestStores();
    const local = join(dir, `local-${file}`);
    await writeFile(local, change(await readFile(join(EXAMPLES, file), "utf8")));
    const settings = { ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" };
    await using running = await startTestGateway(settings);
    await apply(settings, local);
    const apps = await running.api<readonly { id: string; uid: string }[]>("GET", "/apps");
    const app = apps.find((one) => one.uid === uid);
    const list = () => running.api<readonly { id: string }[]>("GET", `/apps/${app?.id}/events`);
    await until(async () => (await list()).length >= count);
    return (await list()).map(({ id }) => id);
  }

  it("follow an event stream like that of Wikipedia", async () => {
    await using stream = await startStreamServer();
    stream.make(3);
    const change = (text: string): string =>
      text
        .replace("https://stream.wikimedia.org/v2/stream/recentchange", stream.url)
        .replace(`"typePath": "$.type"`, `"typePath": "$event"`)
        .replace(`"edit"`, `"even"`);
    expect(await eventsOf("wikipedia.setup.json", "wikipedia", change, 2)).toEqual(["0", "2"]);
  });

  it("poll a list like GitHub's releases", async () => {
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify([
          { id: 2, tag_name: "v2.0.0" },
          { id: 1, tag_name: "v1.0.0" },
        ]),
      );
    });
    await using github = await listenLocally(server);
    const change = (text: string): string => text.replace("https://api.github.com", github.origin);
    expect(await eventsOf("github-releases.setup.json", "releases", change, 2)).toEqual(["1", "2"]);
  });
});
