import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, expect, it } from "vitest";
import { readEntry } from "../../src/cli/listen/entry.ts";
import { installApp } from "../support/channels.ts";
import { runInlet } from "../support/command.ts";
import { freePort } from "../support/free-port.ts";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const dir = mkdtempSync(join(tmpdir(), "inlet-listen-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const world = opened(async () => {
  await using opening = new AsyncDisposableStack();
  const gateway = opening.use(await startTestGateway(opening.use(await createTestStores()).env));
  const channels = ["one", "two"].map((uid) => ({
    uid,
    kind: "webhook",
    config: {},
    events: [{ type: "t" }],
  }));
  const app = await installApp(gateway, channels);
  const owned = opening.move();
  return {
    app,
    env: { INLET_URL: gateway.origin, INLET_API_KEY: API_KEY, INLET_APP: app.id, XDG_CONFIG_HOME: dir },
    async post(uid: string, body: string) {
      const url = app.channels.find((channel) => channel.uid === uid)?.url ?? "";
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", "x-mine": "yes" },
        body,
      });
      expect(response.status).toBe(200);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
});

interface Taken {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A local server that may start later than the listener. */
async function startLocalServer(port: number, status = 200) {
  const taken: Taken[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    taken.push({ headers: request.headers, body });
    response.writeHead(status).end();
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    taken,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Runs `inlet listen` until `isEnough` returns true. */
async function listenUntil(args: readonly string[], isEnough: () => boolean) {
  const ending = new AbortController();
  const running = runInlet(["listen", ...args], { env: world.env, signal: ending.signal });
  await until(isEnough);
  ending.abort();
  return running;
}

it("inlet listen sends the exact bytes and attributes of events, signed with the printed secret", async () => {
  await using server = await startLocalServer(0);
  const bodies = ['{"big":12345678901234567890,  "n":1.0}', '{"lines":\r\n1}', '"text"'];
  for (const body of bodies) await world.post("one", body);
  const { stderr } = await listenUntil(
    ["--to", server.url, "--since", "1h"],
    () => server.taken.length === 3,
  );
  expect(server.taken.map(({ body }) => body)).toEqual(bodies);
  const secret = /whsec_\S+/.exec(stderr)?.[0] ?? "";
  for (const { headers, body } of server.taken) {
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "ce-type": "t",
      "ce-source": `/apps/${world.app.id}/channels/one`,
    });
    new Webhook(secret).verify(body, headers as Record<string, string>);
  }
  expect(new Set(server.taken.map(({ headers }) => headers["webhook-id"])).size).toBe(3);
  expect(statSync(join(dir, "inlet/listen-secret")).mode & 0o777).toBe(0o600);
});

it("inlet listen waits for an unreachable server, sends events in order, and resumes at the stored position", async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/x`;
  const ending = new AbortController();
  const running = runInlet(["listen", "two", "--to", url, "--since", "1h"], {
    env: world.env,
    signal: ending.signal,
  });
  await world.post("one", "0");
  for (const n of [1, 2, 3]) await world.post("two", `${n}`);
  {
    await using server = await startLocalServer(port, 500);
    await until(() => server.taken.length === 3);
    expect(server.taken.map(({ body }) => body)).toEqual(["1", "2", "3"]);
    ending.abort();
    await running;
  }
  for (const n of [4, 5]) await world.post("two", `${n}`);
  await using server = await startLocalServer(port);
  await listenUntil(["two", "--to", url], () => server.taken.length >= 2);
  expect(server.taken.map(({ body }) => body)).toEqual(["4", "5"]);
});

it("inlet listen fails while another listener receives the same events, and succeeds after that listener ends", async () => {
  await using server = await startLocalServer(0);
  const ending = new AbortController();
  const args = ["listen", "one", "--to", server.url];
  const first = runInlet(args, { env: world.env, signal: ending.signal });
  await until(async () => {
    await world.post("one", "1");
    return server.taken.length > 0;
  });
  const second = await runInlet(args, { env: world.env });
  expect([second.code, second.stderr]).toEqual([1, expect.stringContaining("sends the same events")]);
  ending.abort();
  await first;
  await world.post("one", "2");
  const third = await listenUntil(args.slice(1), () => server.taken.some(({ body }) => body === "2"));
  expect(third.stderr).toContain("starting at ");
});

it("inlet listen --raw forwards new deliveries with the sender's headers and bytes", async () => {
  await using server = await startLocalServer(0);
  const ending = new AbortController();
  let n = 0;
  const running = runInlet(["listen", "one", "--raw", "--to", `${server.url}?a=1`], {
    env: world.env,
    signal: ending.signal,
  });
  // Only sampled deliveries are recorded, so the test sends deliveries until one arrives.
  await until(
    async () => {
      await world.post("one", `{"raw":  ${++n}}`);
      return server.taken.some(({ body }) => body.includes("raw"));
    },
    { everyMs: 300 },
  );
  ending.abort();
  const { stderr } = await running;
  const taken = server.taken.find(({ body }) => /^\{"raw": {2}\d+\}$/.test(body));
  expect(taken?.headers).toMatchObject({ "content-type": "application/json", "x-mine": "yes" });
  expect(Object.keys(taken?.headers ?? {}).filter((name) => /^(?:ce|webhook)-/.test(name))).toEqual([]);
  expect(stderr).toContain("Signatures are removed");
});

it("readEntry returns JSON data, plain text and base64 data of an event exactly as the gateway sent them", () => {
  const at = '"topic":"a.b","entryId":"1-0"';
  const fieldsOf = (members: string) => readEntry(`{"id":"1",${members}${at}}`).fields;
  expect(fieldsOf('"data":{"n": 1.0},')).toEqual(["id", "1", "data", '{"n": 1.0}']);
  expect(fieldsOf('"datacontenttype":"text/plain","data":"a\\nb",').slice(4)).toEqual(["data", "a\nb"]);
  expect(fieldsOf('"data_base64":"AAE=",')).toEqual(["id", "1", "data_base64", "AAE="]);
  expect(fieldsOf("")).toEqual(["id", "1"]);
});
