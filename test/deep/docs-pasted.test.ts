import { spawn, spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { open, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { createSession } from "better-sse";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { listenLocally } from "../support/local-server.ts";
import {
  expectInOrder,
  type PastedPages,
  programOf,
  startPastedPages,
  waitUntil,
} from "../support/pasted-pages.ts";
import { until } from "../support/until.ts";

const SECRET = "a secret of your choice";

let pages: PastedPages;
beforeAll(async () => {
  pages = await startPastedPages();
});
afterAll(() => pages?.[Symbol.asyncDispose]());

it("the commands of the GitHub page create a channel that publishes signed deliveries once, and read the events", async () => {
  const output = await pages.paste("github.md");
  expectInOrder(output, ['"step":"address"', '"step":"event"', '"state":"active"', '"published":1', "push"]);
  expect(output).toContain('{"ref": "refs/heads/main"}');
  expect(output.trim().split("\n").at(-1)).toBe("1");
  expect(output).not.toContain(SECRET);

  const apps = await pages.gateway.api<{ id: string; uid: string }[]>("GET", "/apps");
  const { id = "" } = apps.find(({ uid }) => uid === "github") ?? {};
  const channel = await pages.gateway.api<{ url: string }>("GET", `/apps/${id}/channels/github`);
  expect(JSON.stringify(channel)).not.toContain(SECRET);
  const send = async (event: string, text: string): Promise<unknown> => {
    const headers = {
      "content-type": "application/json",
      "x-github-event": event,
      "x-github-delivery": event === "push" ? "first" : `of ${event}`,
      "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(text).digest("hex")}`,
    };
    return (await fetch(channel.url, { method: "POST", headers, body: text })).json();
  };
  expect(await send("push", '{"ref": "refs/heads/main"}')).toMatchObject({ published: 0, duplicates: 1 });
  expect(await send("issues", '{"issue": {"title": "It works"}}')).toMatchObject({ published: 1 });
  expect(await send("issues", '{"issue": {}}')).toMatchObject({ quarantined: 1 });
});

it("the commands of the webhooks page create a channel that accepts signed deliveries and rejects others", async () => {
  expectInOrder(await pages.paste("sending.md"), ['"state":"active"', '"published":1', "unauthenticated"]);
});

it("the commands of the API page list the apps", async () => {
  expect(await pages.paste("api.md")).toMatch(/^\[/);
});

it("the commands of the page on keys create a key that can list apps but not create keys", async () => {
  expectInOrder(await pages.paste("keys.md"), ['"uid"', "exit code 5"]);
});

it("the commands of the pages on monitoring and starting print that the gateway is ready", async () => {
  for (const page of ["watching.md", "starting.md"])
    expect(JSON.parse(await pages.paste(page))).toMatchObject({ status: "ready" });
});

it("the commands of the command line page create a launcher that runs from any folder", async () => {
  const clone = join(import.meta.dirname, "../..");
  const output = await pages.run(
    `HOME="$PWD/home"\n${pages.scriptOf("command-line.md").replaceAll("$PWD", clone)}\ncd / && PATH=/usr/bin:/bin "$HOME/.local/bin/inlet" --version`,
  );
  expect(output).toMatch(/^\d+\.\d+\.\d+\n$/);
});

it("the commands of the CloudEvents page publish an event", async () => {
  const output = await pages.paste("cloudevents.md");
  expectInOrder(output, ['"status":200', '"published":1', '"id":"1","type":"com.example.measured"']);
});

it("the commands of a page can be run twice: the second run reports that the blueprint exists, and sends its event again", async () => {
  for (const page of ["sending.md", "cloudevents.md"]) {
    const script = pages.scriptOf(page).replaceAll(/\b(billing|plant)\b(?!\.json)/g, "$1-twice");
    for (const [pasted, result] of [
      [script, '"published":1'],
      [`exec 2>&1\n${script}`, '"duplicates":1'],
    ] as const) {
      const output = await pages.run(pasted);
      expect(output.includes("A blueprint with this uid already exists."), page).toBe(pasted !== script);
      expect(output, page).toContain(result);
    }
  }
});

it("the commands of the Stripe page create a channel that publishes the data of a signed event", async () => {
  expectInOrder(await pages.paste("stripe.md"), [
    ...['"step":"event"', '"state":"active"', '"published":1', '"in_1"', '"state":"active"'],
    ...["unauthenticated", "The channel rejected it.", '"signature_invalid"'],
  ]);
});

it("the commands of the Slack page respond to Slack's URL verification challenge, and publish a signed event", async () => {
  const challenge = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P";
  expectInOrder(await pages.paste("slack.md"), [
    ...['"state":"active"', challenge, '"published":1', '"app_mention"', '"text":"hello"'],
  ]);
});

it("the commands of the Shopify page publish a signed event, and keep its large number exact", async () => {
  expectInOrder(await pages.paste("shopify.md"), ['"state":"active"', '"published":1', "820982911946154500"]);
});

/** Saves a program of a page and starts it on a free port. Its output goes to a file of the folder. */
async function startProgram(
  page: string,
  file: string,
  { env = {}, port }: { readonly env?: Readonly<Record<string, string>>; readonly port: number },
) {
  await writeFile(join(pages.dir, file), programOf(page, file));
  const output = `${file}.out`;
  await using fd = await open(join(pages.dir, output), "w");
  const child = spawn(process.execPath, [file], {
    cwd: pages.dir,
    env: { ...env, PORT: String(port) },
    stdio: ["ignore", fd.fd, "inherit"],
  });
  const origin = `http://127.0.0.1:${port}`;
  await until(() =>
    connectTo(port).then(
      () => true,
      () => false,
    ),
  );
  return {
    origin,
    output,
    async [Symbol.asyncDispose]() {
      child.kill();
      await once(child, "exit");
    },
  };
}

async function connectTo(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
}

it("the commands of the page on order by key send the events of a customer in order, and those of others meanwhile", async () => {
  await writeFile(join(pages.dir, "broken"), "");
  await using handler = await startProgram("order-by-key.md", "handler.mjs", { port: await freePort() });
  const script = pages.scriptOf("order-by-key.md").replaceAll("http://127.0.0.1:8091", handler.origin);
  const has = (id: string): string => waitUntil(`grep -q ${id} ${handler.output}`);
  const waiting = script.replace(/^rm broken$/m, `${has("b-2")}$&\n${has("a-2")}`);
  await pages.run(waiting);
  expect(await readFile(join(pages.dir, handler.output), "utf8")).toBe("b-1\nb-2\na-1\na-2\n");
});

/** Plays the public servers of the source pages: an event stream, and a list of events, newest first, over two pages. */
async function startPublicServers() {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://local");
    if (url.pathname === "/v2/stream/recentchange") {
      const session = await createSession(request, response);
      session.push({ type: "edit", title: "One" }, "message", "a").push({ type: "log" }, "message", "b");
      return;
    }
    expect(`${url.pathname}?${url.searchParams.get("per_page")}`).toBe("/repos/nodejs/node/events?100");
    const isLast = url.searchParams.has("page");
    const link = `<http://${request.headers.host}${request.url}&page=2>; rel="next"`;
    response.writeHead(200, { "content-type": "application/json", ...(isLast ? {} : { link }) });
    const ids = isLast ? ["11", "10"] : ["13", "12"];
    response.end(JSON.stringify(ids.map((id) => ({ id, type: "PushEvent", payload: { head: `of ${id}` } }))));
  });
  const local = await listenLocally(server);
  return {
    ...local,
  };
}

it("the commands of the event streams page create a channel that publishes the stream's events, then pause and resume the channel", async () => {
  await using servers = await startPublicServers();
  const output = await pages.run(
    pages.scriptOf("sse.md").replace("https://stream.wikimedia.org", servers.origin),
  );
  expectInOrder(output, ['"title":"One"', '"state":"open"', '"state":"paused"', '"state":"active"']);
});

it("the commands of the event streams page give up on an unreachable stream, whose source then shows the reason", async () => {
  const origin = `http://127.0.0.1:${await freePort()}`;
  const script = pages
    .scriptOf("sse.md")
    .replaceAll(/\bwikipedia\b(?!\.json)/g, "wikipedia-away")
    .replace("https://stream.wikimedia.org", origin)
    .replace("--timeout 60s", "--timeout 2s || true");
  expectInOrder(await pages.run(script), ['"lastError":{"code":"refused"']);
});

it("the commands of the pages on polling and sources fetch each item once, also over OAuth, and reset a source's cursor", async () => {
  await using servers = await startPublicServers();
  await using orders = await startProgram("polling.md", "orders.mjs", { port: await freePort() });
  const script = pages
    .scriptOf("polling.md", "sources.md")
    .replace("https://api.github.com", servers.origin)
    .replaceAll("http://127.0.0.1:8095", orders.origin);
  expectInOrder(await pages.run(script), [
    ...['"type":"PushEvent"', '"ok":true', '"total":12.5', '"total":99'],
    ...['"cursor":{"value":{"sequence":"2"}', '"total":2', '{"value":{"sequence":"1"}'],
  ]);
});

/** The part of the quickstart about an app of your own, named for this page, followed by the page that builds on it. */
function shopOf(page: string): string {
  const [, own = ""] = pages.scriptOf("quickstart.md").split(/(?=^cat > shop\.json)/m);
  return `${own}\n${pages.scriptOf(page)}`.replaceAll(
    /\bshop\b(?!\.json)/g,
    `shop-${page.replace(".md", "")}`,
  );
}

it("the commands of the handlers page start a handler that rejects unsigned requests and receives a failed event again", async () => {
  await symlink(join(import.meta.dirname, "../../node_modules"), join(pages.dir, "node_modules"));
  const port = await freePort();
  const script = shopOf("handlers.md").replaceAll("http://127.0.0.1:8090", `http://127.0.0.1:${port}`);
  const [subscribe = "", rest = ""] = script.split(/(?=^curl -sS -o)/m);
  await pages.run(subscribe);
  const { handler } = JSON.parse(await readFile(join(pages.dir, "subscription.json"), "utf8"));
  const env = { HANDLER_SECRET: handler.secret };
  await using server = await startProgram("handlers.md", "handler.mjs", { env, port });
  const has = (total: number, times = 1): string =>
    waitUntil(`[ "$(grep -c '"total":${total}}' ${server.output})" -ge ${times} ]`);
  const failed = "npx inlet subscriptions --app shop-handlers --field lastError.message";
  const output = await pages.run(
    rest
      .replace(/^touch down$/m, `${has(7)}$&`)
      .replace(/^npx inlet subscriptions --app/m, `${waitUntil(`${failed} | grep -q .`)}$&`)
      .replace(/^rm down$/m, `$&\n${has(8)}`)
      .replace(/^npx inlet replay .* --type .*$/m, `$&\n${has(8, 2)}`),
  );
  expectInOrder(output, ["401", "responded 503", '"matched":']);
});

it("the commands of the Python page read and acknowledge new entries, and entries that a stopped reader left unacknowledged", async ({
  skip,
}) => {
  const hasRedis = (python: string): boolean => spawnSync(python, ["-c", "import redis"]).status === 0;
  const python = ["python3", "/usr/bin/python3"].find(hasRedis);
  skip(python === undefined, "no python3 here has the module redis");
  await writeFile(join(pages.dir, "reader.py"), programOf("python.md", "reader.py"));
  const address = `unix://${pages.redis.pathname}?db=${pages.redis.searchParams.get("db")}`;
  const cli = `redis-cli -s ${pages.redis.pathname} -n ${pages.redis.searchParams.get("db")}`;
  const abandon = `${cli} XREADGROUP GROUP "$SUBSCRIPTION" dead COUNT 1 STREAMS "$(${cli} SMEMBERS "inlet:sub:$SUBSCRIPTION")" '>'`;
  const end = "npx inlet subscriptions delete";
  const script = shopOf("python.md")
    .replace("REDIS_URL=unix://$PWD/data/run/redis.sock ", `export REDIS_URL='${address}'\n`)
    // A reader that dies with an unacknowledged event runs first.
    .replace(
      '.venv/bin/python reader.py "$SUBSCRIPTION"',
      `echo abandoned $(${abandon} | grep -x 1)\nsed -i.bak s/60_000/1/ reader.py; ${python} reader.py "$SUBSCRIPTION" & READER_PID=$!`,
    )
    .replace(
      end,
      `${waitUntil(`npx inlet subscriptions get "$SUBSCRIPTION" | grep -q '"lag":0,.*"pending":0'`)}${end}`,
    );
  const output = await pages.run(`trap 'kill $READER_PID' EXIT\n${script}`);
  expectInOrder(output, ["abandoned 1", 'order.created 1 {"total": 12.50}']);
  expectInOrder(output, ["abandoned 1", 'order.created py-1 {"total": 7}']);
});

it("the commands of the page about Slack for all customers create an intake, and set the route keys of an install", async () => {
  const output = await pages.paste("slack-customers.md");
  expectInOrder(output, ["/hooks/ch_", '"active"', '"acme"', '"T061EG9R6"', '"status":200', "enterprise_id"]);
  const apps = await pages.gateway.api<{ id: string; uid: string }[]>("GET", "/apps");
  const appId = apps.find(({ uid }) => uid === "acme")?.id;
  await until(async () => {
    const events = await pages.gateway.api<{ type: string }[]>("GET", `/apps/${appId}/events`);
    return events.some(({ type }) => type === "app_mention");
  });
});

it("the commands of the page on pipelines subscribe to an event type, and print the group and the topic", async () => {
  const output = await pages.run(shopOf("pipelines.md"));
  expect(output).toMatch(/^sub_\w+\n\S+\.orders\.\S*order\.created\n$/m);
});

it("the commands of the page about ChatGPT send an order to an agent's endpoint", async () => {
  await using agent = await startProgram("chatgpt.md", "agent.mjs", { port: await freePort() });
  const script = shopOf("chatgpt.md").replaceAll("http://127.0.0.1:8092", agent.origin);
  const end = "npx inlet agents delete";
  const output = await pages.run(script.replace(end, `${waitUntil(`grep -q 2500 ${agent.output}`)}${end}`));
  expectInOrder(output, ['"state":"active"', '"refreshBefore"', '"published":1']);
  expect(await readFile(join(pages.dir, agent.output), "utf8")).toMatch(/order\.created \{"total":2500\}/);
});
