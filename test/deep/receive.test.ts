import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as requestOf } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { createTestStores } from "../support/gateway.ts";
import {
  API_KEY,
  type GatewayProcess,
  PROGRAM_ENV,
  startGatewayProcess,
} from "../support/gateway-process.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { listenLocally } from "../support/local-server.ts";
import { opened } from "../support/opened.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { startGitHub } from "../support/providers/github.ts";
import { startStreamServer } from "../support/stream-server.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const dir = mkdtempSync(join(tmpdir(), "inlet-receive-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Running {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves with the exit code, or with the signal that ended the process. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

function spawnReceive(args: readonly string[], env: Readonly<Record<string, string>>, cwd = dir): Running {
  const child = spawn(process.execPath, [MAIN, "receive", ...args], {
    cwd,
    env: { ...PROGRAM_ENV, XDG_CONFIG_HOME: join(dir, "config"), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const written = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => {
    written.stdout += chunk;
  });
  child.stderr.on("data", (chunk: Buffer) => {
    written.stderr += chunk;
  });
  const exited = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  return { child, exited, stdout: () => written.stdout, stderr: () => written.stderr };
}

interface StepLine extends Readonly<Record<string, unknown>> {
  readonly step: string;
  readonly command: string;
}

const linesOf = (stdout: string): readonly StepLine[] =>
  stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

const world = opened(async () => {
  await using opening = new AsyncDisposableStack();
  const stores = opening.use(await createTestStores());
  const env = { ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" };
  const gateway: GatewayProcess = opening.use(await startGatewayProcess(env));
  const owned = opening.move();
  return {
    gateway,
    stores,
    api: (method: string, path: string, body?: object): Promise<unknown> =>
      fetch(`${gateway.origin}/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      }).then((response) => response.json()),
    env: { INLET_URL: gateway.origin, INLET_API_KEY: API_KEY },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
});

/** Runs the command to its end, and returns its steps. The last one must name an event that is on its topic. */
async function receiveOnce(...args: string[]): Promise<readonly StepLine[]> {
  const running = spawnReceive([...args, "--once", "--yes", "--json"], world.env);
  const code = await running.exited;
  expect({ code, stderr: running.stderr() }).toMatchObject({ code: 0 });
  const steps = linesOf(running.stdout());
  const { eventId, topic, entryId } = steps.at(-1) ?? ({} as Readonly<Record<string, unknown>>);
  const [[, fields] = []] = await world.stores.client.xrange(String(topic), String(entryId), String(entryId));
  expect(fields?.[fields.indexOf("id") + 1]).toBe(eventId);
  return steps;
}

const namesOf = (steps: readonly StepLine[]) => steps.map(({ step }) => step);

describe("inlet receive", () => {
  it("sets up a provider, and sends a signed event that is on its topic", async () => {
    const secret = join(dir, "secret.txt");
    writeFileSync(secret, "whsec_of_the_test\n");
    const steps = await receiveOnce("stripe", "--secret", `@${secret}`, "--type", "charge.succeeded");
    expect(namesOf(steps)).toEqual(["gateway", "blueprint", "app", "address", "test", "event"]);
    expect(steps).toMatchObject([
      { url: `${world.gateway.origin}/v1`, started: false },
      { uid: "stripe", created: true },
      { uid: "stripe", created: true },
      { url: expect.stringContaining("/hooks/ch_") },
      { signed: true },
      { type: "charge.succeeded", eventId: expect.stringMatching(/^evt_/) },
    ]);
    expect(JSON.stringify(steps)).not.toContain("whsec_of_the_test");

    const address = String(steps.find(({ step }) => step === "address")?.url);
    const unsigned = await fetch(address, { method: "POST", body: "{}" });
    expect(unsigned.status).toBe(401);
  });

  it("finds the app of an earlier run, and rejects other settings under the same name", async () => {
    const first = await receiveOnce("webhook", "--name", "again");
    const second = await receiveOnce("webhook", "--name", "again");
    expect(namesOf(second)).toEqual(["gateway", "app", "address", "test", "event"]);
    expect(second[1]).toMatchObject({ created: false });
    expect(second.at(-1)?.topic).toBe(first.at(-1)?.topic);
    expect(second.at(-1)?.eventId).not.toBe(first.at(-1)?.eventId);
    const other = spawnReceive(["github", "--name", "again", "--once", "--yes"], world.env);
    expect(await other.exited).toBe(2);
    expect(other.stderr()).toContain("The channel again of the app again has other settings.");
  });

  it("prints commands that do the same", async () => {
    const steps = await receiveOnce("webhook", "--name", "printed");
    const shell = steps
      .filter(({ step }) => step === "app" || step === "blueprint")
      .map(({ command }) => command.replaceAll("printed", "pasted"));
    const id = String(steps.find(({ step }) => step === "blueprint")?.id);
    const lines = `inlet() { "${process.execPath}" "${MAIN}" "$@"; }\n${shell[0]} > made.json\n${shell[1]?.replace(
      id,
      `'$(node -p 'JSON.parse(fs.readFileSync("made.json")).id')'`,
    )}\ninlet send pasted --app pasted -d '{"pasted":true}'`;
    const child = spawn("sh", ["-ec", lines], { cwd: dir, env: { ...PROGRAM_ENV, ...world.env } });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        output += chunk;
      });
    expect([(await once(child, "close"))[0], output]).toEqual([0, expect.stringContaining('"published":1')]);
  });

  it("receives CloudEvents, and adds a channel to an existing app", async () => {
    await receiveOnce("webhook", "--name", "shared");
    const steps = await receiveOnce("cloudevents", "--app", "shared", "--type", "com.example.order");
    expect(namesOf(steps)).toEqual(["gateway", "channel", "address", "test", "event"]);
    expect(steps.at(-1)).toMatchObject({ type: "com.example.order", data: { hello: "world" } });
  });

  it("follows a stream of server-sent events", async () => {
    await using stream = await startStreamServer();
    stream.make(3);
    const steps = await receiveOnce("sse", stream.url, "--name", "stream");
    expect(namesOf(steps)).toEqual(["gateway", "blueprint", "app", "event"]);
    expect(steps.at(-1)).toMatchObject({ eventId: "0", type: "received", data: { n: 0 } });
  });

  it("polls a URL, and reports the errors of a source until it has an event", async () => {
    await using upstream = await PollUpstream.start();
    upstream.insert();
    const url = `${upstream.origin}/rows`;
    const steps = await receiveOnce("poll", url, "--items", "$.rows", "--id", "$.id", "--name", "rows");
    expect(steps.at(-1)).toMatchObject({ eventId: "r00001" });

    const closed = `http://127.0.0.1:${await freePort()}/`;
    const failing = spawnReceive(["poll", closed, "--name", "closed", "--yes", "--json"], world.env);
    await until(() => failing.stderr().includes("The source fails, and Inlet retries: "));
    failing.child.kill("SIGINT");
    expect(await failing.exited).toBe(0);
  });

  it("registers the address at the provider with a token", async () => {
    await using github = await startGitHub({ clock: Date.now });
    const args = ["github", "owner=acme", "repo=shop", "--name", "registered", "--base-url", github.url];
    const steps = await receiveOnce(...args, "--token", github.token);
    expect(namesOf(steps)).toEqual([
      "gateway",
      "connection",
      "blueprint",
      "app",
      "address",
      "registration",
      "test",
      "event",
    ]);
    const address = steps.find(({ step }) => step === "address")?.url;
    expect(github.hooks()).toMatchObject([{ address }]);
    expect(JSON.stringify(steps)).not.toContain(github.token);

    const retried = args.with(4, "retried");
    const rejected = spawnReceive([...retried, "--token", "wrong", "--yes"], world.env);
    expect(await rejected.exited).toBe(1);
    expect(rejected.stderr()).toContain("The provider has not registered the address: ");
    const again = await receiveOnce(...retried, "--token", github.token);
    expect(again.find(({ step }) => step === "registration")).toMatchObject({ state: "active" });
  });

  it("keeps the connection of the channel, and replaces its token", async () => {
    await using github = await startGitHub({ clock: Date.now });
    const origin = new URL(github.url).origin;
    const { api } = world;
    const fitting = () =>
      api("GET", "/connections").then((all) =>
        (all as readonly { id: string; name: string; allowedOrigins: readonly string[] }[]).filter(
          ({ allowedOrigins }) => allowedOrigins.includes(origin),
        ),
      );
    const args = ["github", "owner=acme", "repo=shop", "--name", "connected", "--base-url", github.url];
    await receiveOnce(...args, "--token", github.token);
    await receiveOnce(...args, "--token", github.token);
    const [own, ...others] = await fitting();
    expect([own?.name, others]).toEqual(["GitHub for connected", []]);

    await api("POST", "/connections", {
      name: "GitHub of beta",
      kind: "bearer",
      config: { token: github.token },
      allowedOrigins: [origin],
    });
    const undecided = args.with(4, "undecided");
    const rejected = spawnReceive([...undecided, "--once", "--yes"], world.env);
    expect(await rejected.exited).toBe(2);
    expect(rejected.stderr()).toMatch(/Choose one with --connection:\n {2}con_\w+ {2}GitHub/);
    const steps = await receiveOnce(...args);
    expect(namesOf(steps)).not.toContain("connection");
    const { id = "" } = own ?? {};
    const appId = steps.find(({ step }) => step === "app")?.id;
    expect(await api("GET", `/apps/${appId}/channels/connected`)).toMatchObject({
      config: { registration: { connectionId: id } },
    });

    await receiveOnce("webhook", "--name", "taken");
    const taken = spawnReceive([...args.with(4, "taken"), "--token", github.token, "--yes"], world.env);
    expect(await taken.exited).toBe(2);
    expect(await fitting()).toHaveLength(2);
  });

  it("keeps the named secrets of a channel", async () => {
    const { api } = world;
    await receiveOnce("whatsapp", "--secret", "first");
    const steps = await receiveOnce("whatsapp", "--secret", "second");
    const appId = steps.find(({ step }) => step === "app")?.id;
    const secrets = [{ value: "second" }, { name: "verifyToken", value: "token" }];
    await api("PUT", `/apps/${appId}/channels/whatsapp`, { config: { secrets } });
    const third = spawnReceive(["whatsapp", "--secret", "third", "--once", "--yes"], world.env);
    expect(await third.exited).toBe(2);
    expect(third.stderr()).toContain(
      "replaces all secrets of the channel whatsapp, also the named ones (verifyToken)",
    );
  });

  it("sends an unsigned test event to a channel whose provider signs nothing", async () => {
    const steps = await receiveOnce("docker-hub");
    expect(steps.find(({ step }) => step === "test")).toMatchObject({
      signed: false,
      command: expect.not.stringContaining("--test"),
    });
  });

  it("ends with an error if no event arrives before the timeout", async () => {
    await using upstream = await PollUpstream.start();
    const args = ["poll", `${upstream.origin}/rows`, "--items", "$.rows", "--name", "silent"];
    const running = spawnReceive([...args, "--once", "--timeout", "1s", "--yes"], world.env);
    expect(await running.exited).toBe(1);
    expect(running.stderr()).toContain("No event arrived within 1 s (--timeout).");
  });

  it("explains what stays after Ctrl-C during a registration", async () => {
    // The provider never responds.
    await using silent = await listenLocally(createServer(() => {}));
    const args = ["github", "owner=acme", "repo=shop", "--name", "unconfirmed", "--base-url", silent.origin];
    const running = spawnReceive([...args, "--token", "t", "--yes"], world.env);
    await until(() => running.stderr().includes("Waiting until the provider confirms"));
    running.child.kill("SIGINT");
    expect(await running.exited).toBe(0);
    expect(running.stderr()).toContain("Stopped. The app unconfirmed stays");
  });

  it("ends with the exit code of an interruption if --once has not seen an event", async () => {
    await using upstream = await PollUpstream.start();
    const args = ["poll", `${upstream.origin}/rows`, "--items", "$.rows", "--name", "interrupted"];
    const running = spawnReceive([...args, "--once", "--yes", "--json"], world.env);
    await until(() => running.stdout().includes('"step":"app"'));
    running.child.kill("SIGINT");
    expect(await running.exited).toBe(130);
  });

  it("publishes the test event without verification if only the provider can sign", async () => {
    const steps = await receiveOnce("sendgrid");
    expect(steps.find(({ step }) => step === "test")).toMatchObject({ signed: false });
  });

  it.each([
    ["a top-level field", ["webhook", "--name", "kind", "--type", "order", "--type-path", "$.kind"]],
    ["a nested field", ["webhook", "--name", "nested", "--type", "order", "--type-path", "$.event.kind"]],
    ["a header", ["webhook", "--name", "header", "--type", "order", "--type-path", "$headers['x-kind']"]],
    ["the preset's field, without the secret", ["stripe", "--name", "unsigned", "--type", "charge.refunded"]],
  ])("puts the type of the test event into %s", async (_, args) => {
    const steps = await receiveOnce(...args);
    expect(steps.find(({ step }) => step === "test")).toMatchObject({ signed: false });
    expect(steps.at(-1)).toMatchObject({ type: args[args.indexOf("--type") + 1] });
  });

  it("skips the test event if it has no sample of the type", async () => {
    const args = ["stripe", "--name", "unknown", "--type", "no.such.type", "--yes", "--json"];
    const once = spawnReceive([...args, "--once"], world.env);
    expect(await once.exited).toBe(1);
    expect(once.stderr()).toContain("there is no sample of the type no.such.type");
    const following = spawnReceive(args, world.env);
    await until(
      () =>
        following.stderr().includes("Events of this channel") && following.stdout().includes('"step":"test"'),
    );
    expect(linesOf(following.stdout()).at(-1)).toMatchObject({ step: "test", skipped: expect.any(String) });
    following.child.kill("SIGINT");
    expect(await following.exited).toBe(0);
  });

  it("ends if the registration belongs to another hooks URL", async () => {
    await using github = await startGitHub({ clock: Date.now });
    await using stores = await createTestStores();
    const args = ["github", "owner=acme", "repo=shop", "--base-url", github.url, "--once", "--yes"];
    const ends: unknown[] = [];
    for (const host of ["one", "two"]) {
      const settings = {
        ...stores.env,
        INLET_ALLOW_NETWORKS: "127.0.0.0/8",
        INLET_HOOKS_URL: `https://${host}.example`,
      };
      await using gateway = await startGatewayProcess(settings);
      const env = { INLET_URL: gateway.origin, INLET_API_KEY: API_KEY };
      const running = spawnReceive([...args, "--token", github.token], env);
      await until(() => running.child.exitCode !== null || github.hooks().length > 0);
      if (host === "one") running.child.kill("SIGINT");
      ends.push([await running.exited, running.stderr()]);
    }
    expect(ends[1]).toEqual([1, expect.stringContaining("`inlet registrations adopt`")]);
  });

  it("forwards the events to a local server", async () => {
    await using local = await startHandlerServer();
    const steps = await receiveOnce("webhook", "--name", "forwarded", "--to", local.urlOf("/hook"));
    expect(namesOf(steps)).toEqual(["gateway", "blueprint", "app", "address", "test", "event"]);
    expect(steps.at(-1)).toMatchObject({ step: "event", forwarded: { status: 200 } });
    expect(local.at("/hook").map(({ headers }) => headers["ce-id"])).toEqual([steps.at(-1)?.eventId]);
  });

  it("shows the events of the channel until Ctrl-C, and then explains what stays", async () => {
    const running = spawnReceive(["webhook", "--name", "shown", "--yes", "-o", "table"], world.env);
    await until(() => running.stdout().includes('"hello":"world"'));
    const [address = ""] = /http:\S+\/hooks\/ch_\w+/.exec(running.stdout()) ?? [];
    const body = JSON.stringify({ second: true });
    await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body });
    await until(() => running.stdout().includes(`shown:received`) && running.stdout().includes(body));
    running.child.kill("SIGINT");
    expect(await running.exited).toBe(0);
    expect(running.stdout()).toContain("Enter this address at the sender.");
    expect(running.stderr()).toContain(
      "Stopped. The app shown stays, with its channel shown and its events.\n" +
        "The gateway keeps receiving. The same command shows the events again.\n" +
        "To remove everything: inlet apps delete shown --purge, then inlet blueprints delete shown\n",
    );
  });

  it("advises to delete only its channel if it was added to an existing app", async () => {
    await receiveOnce("webhook", "--name", "production");
    for (const run of ["first", "second"]) {
      const running = spawnReceive(["cloudevents", "--type", "order", "--yes"], {
        ...world.env,
        INLET_APP: "production",
      });
      await until(() => running.stdout().includes('"hello":"world"'));
      running.child.kill("SIGINT");
      expect(await running.exited, run).toBe(0);
      expect(running.stderr()).toContain(
        "To remove the channel: inlet channels delete cloudevents --app production\n",
      );
      expect(running.stderr()).not.toContain("--purge");
    }
    const named = spawnReceive(["webhook", "--name", "production", "--yes"], world.env);
    await until(() => named.stdout().includes('"hello":"world"'));
    named.child.kill("SIGINT");
    expect(await named.exited).toBe(0);
    expect(named.stderr()).not.toContain("--purge");
  });

  it("starts a gateway in an empty folder, and leaves its data and its key for the next run", async () => {
    const folder = join(dir, "empty");
    mkdirSync(folder);
    const env = { INLET_PORT: String(await freePort()), XDG_CONFIG_HOME: join(dir, "first") };
    const unconfirmed = spawnReceive(["webhook", "--once"], env, folder);
    expect(await unconfirmed.exited).toBe(2);
    expect(unconfirmed.stderr()).toContain("pass --yes to start one here");
    expect(readdirSync(folder)).toEqual([]);

    const ids: unknown[] = [];
    for (const created of [true, false]) {
      const running = spawnReceive(["webhook", "--once", "--yes", "--json"], env, folder);
      const code = await running.exited;
      expect({ code, stderr: running.stderr() }).toMatchObject({ code: 0 });
      const steps = linesOf(running.stdout());
      expect(steps[0]).toMatchObject({ step: "gateway", started: true });
      expect(steps.find(({ step }) => step === "app")).toMatchObject({ created });
      ids.push(steps.at(-1)?.eventId);
    }
    expect(new Set(ids).size).toBe(2);
    const stored = JSON.parse(readFileSync(join(dir, "first", "inlet", "credentials.json"), "utf8"));
    expect(stored).toMatchObject({ baseUrl: `http://127.0.0.1:${env.INLET_PORT}/v1` });
  });

  it("waits for a gateway that is starting", async () => {
    const target = new URL(world.gateway.origin);
    let rejections = 3;
    const starting = createServer((request, response) => {
      if (rejections-- > 0) return void response.writeHead(503).end();
      const { method, headers, url: path } = request;
      const { hostname: host, port } = target;
      const forwarded = requestOf({ host, port, method, headers, path }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      request.pipe(forwarded);
    });
    await using server = await listenLocally(starting);
    const env = { ...world.env, INLET_URL: server.origin };
    const running = spawnReceive(["webhook", "--name", "patient", "--once", "--yes", "--json"], env);
    const code = await running.exited;
    expect({ code, stderr: running.stderr() }).toMatchObject({ code: 0 });
    expect(running.stderr()).toContain("is starting");
    expect(rejections).toBeLessThanOrEqual(0);
  });

  it.each([
    [["gihub"], "Inlet knows no provider gihub. Did you mean github?"],
    [["github", "owner=acme"], "Parameters are missing: repo. Write `inlet receive github owner=… repo=…`."],
    [["poll", "stripe"], "Pass the token with --token"],
    [["poll", "adyen"], "Inlet knows no list of Adyen to poll."],
    [["sse", "example.com"], "`inlet receive sse` needs one URL"],
    [["webhook", "--secret", "x"], "verifies no signature"],
    [
      ["webhook", "--token", "x"],
      "--token has no effect with `inlet receive webhook`. Its options are --name, --type, --type-path.",
    ],
    [["stripe", "--every", "5"], "--every has no effect with `inlet receive stripe`."],
    [
      ["poll", "stripe", "--base-url", "http://a"],
      "--base-url has no effect with `inlet receive poll <provider>`.",
    ],
    [["stripe", "--type-path", "$.type"], "--type-path needs --type"],
    [["stripe", "--timeout", "5s"], "--timeout needs --once"],
    [["cloudevents"], "needs --type"],
    [["poll", "chargebee", "site=acme", "--token", "live_abc"], "Pass the user:password with --token"],
    [["webhook", "--name", "a b"], "must be 1 to 64 characters"],
  ])("explains wrong arguments: %j", async (args, message) => {
    const running = spawnReceive([...args, "--yes"], world.env);
    expect(await running.exited).toBe(2);
    expect(running.stderr()).toContain(message);
  });
});
