import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { createSession } from "better-sse";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { InstalledApp } from "../support/channels.ts";
import { freePort } from "../support/free-port.ts";
import { listenLocally } from "../support/local-server.ts";
import { expectInOrder, type PastedPages, readPage, startPastedPages } from "../support/pasted-pages.ts";
import { until } from "../support/until.ts";

const SECRET = "the secret that GitHub signs with";

let pages: PastedPages;
beforeAll(async () => {
  pages = await startPastedPages();
});
afterAll(() => pages?.[Symbol.asyncDispose]());

it("the commands of the GitHub page create a channel that publishes signed deliveries once, and read the events", async () => {
  const output = await pages.paste("github.md");
  expect(output).toMatch(/^active$/m);
  expect(output).toContain('"published":1');
  expect(output).toContain('{"ref":"refs/heads/main"}');
  expect(output.trim().split("\n").at(-1)).toBe("1");

  const app: InstalledApp = JSON.parse(await readFile(join(pages.dir, "app.json"), "utf8"));
  const [channel] = app.channels;
  expect(channel?.state).toBe("needsSetup");
  const shown = await pages.gateway.api("GET", `/apps/${app.id}/channels/${channel?.id}`);
  expect(JSON.stringify(shown)).not.toContain(SECRET);

  const send = async (event: string, body: object): Promise<unknown> => {
    const text = JSON.stringify(body);
    const headers = {
      "content-type": "application/json",
      "x-github-event": event,
      "x-github-delivery": event === "push" ? "first" : `of ${event}`,
      "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(text).digest("hex")}`,
    };
    return (await fetch(channel?.url ?? "", { method: "POST", headers, body: text })).json();
  };
  expect(await send("push", { ref: "refs/heads/main" })).toMatchObject({ published: 0, duplicates: 1 });
  expect(await send("issues", { issue: { title: "It works" } })).toMatchObject({ published: 1 });
  expect(await send("issues", { issue: {} })).toMatchObject({ quarantined: 1 });
});

it("the commands of the webhooks page create a channel that accepts signed deliveries and rejects unsigned ones", async () => {
  expectInOrder(await pages.paste("sending.md"), ["active", '"published":1', "unauthenticated"]);
});

it("the commands of the API page list the apps", async () => {
  expect(await pages.paste("api.md")).toMatch(/^\[/);
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
  expect(JSON.parse(output)).toMatchObject({
    published: 1,
    events: [{ id: "1", type: "com.example.measured" }],
  });
});

it("the commands of a page can be run twice: the second run reports that the blueprint exists, and publishes its event", async () => {
  for (const page of ["quickstart.md", "sending.md", "cloudevents.md"]) {
    const script = pages.scriptOf(page).replaceAll(/"(shop|billing|plant)"/gi, '"$1-twice"');
    for (const pasted of [script, `exec 2>&1\n${script}`]) {
      const output = await pages.run(pasted);
      expect(output.includes("A blueprint with this uid already exists."), page).toBe(pasted !== script);
      expect(output, page).toContain('"published":1');
    }
  }
});

it("the commands of the Stripe page create a channel that publishes the data of a signed event", async () => {
  const refused = ["unauthenticated", "does not match"];
  expectInOrder(await pages.paste("stripe.md"), ["active", '"published":1', "in_1", ...refused]);
});

it("the commands of the Slack page respond to Slack's URL verification challenge, and publish a signed event", async () => {
  const challenge = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P";
  expectInOrder(await pages.paste("slack.md"), ["active", challenge, '"published":1', '"app_mention"']);
});

it("the commands of the Shopify page publish a signed event, and keep its large number exact", async () => {
  expectInOrder(await pages.paste("shopify.md"), ["active", '"published":1', "820982911946154500"]);
});

it("the commands of the page on order by key send the events of a customer in order, and those of others meanwhile", async () => {
  const port = `export PORT=${await freePort()}\n`;
  const output = await pages.run(port + pages.scriptOf("order-by-key.md"));
  expectInOrder(output, ["b-1\nb-2\nb-1\nb-2\na-1\na-2\n"]);
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
  expectInOrder(output, ['"title":"One"', '"state":"open"', "paused", "active"]);
});

it("the commands of the event streams page give up on an unreachable stream, and print the API call that shows the reason", async () => {
  const origin = `http://127.0.0.1:${await freePort()}`;
  const script = pages
    .scriptOf("sse.md")
    .replaceAll(/"(wikipedia)"/gi, '"$1-away"')
    .replace("seq 60", "seq 2");
  await expect(pages.run(script.replace("https://stream.wikimedia.org", origin))).rejects.toMatchObject({
    stdout: expect.stringMatching(/^Not within a minute: call GET .*\n\{"state":/m),
  });
});

it("the commands of the pages on polling and sources fetch each item once, also over OAuth, and reset a source's cursor", async () => {
  await using servers = await startPublicServers();
  await save("polling.md", "js", "orders.mjs");
  const port = String(await freePort());
  const script = pages
    .scriptOf("polling.md", "sources.md")
    .replace("https://api.github.com", servers.origin)
    .replace("node orders.mjs", `PORT=${port} node orders.mjs`)
    .replace("http://127.0.0.1:8095", `http://127.0.0.1:${port}`);
  const output = await pages.run(`trap 'kill $ORDERS_PID' EXIT\n${script}`);
  expectInOrder(output, [
    ...['"type":"PushEvent"', '"ok":true', '"total":12.5', '"total":99'],
    ...['"cursor":{"value":{"sequence":"2"}', "\n2\n", '{"value":{"sequence":"1"}'],
  ]);
});

/** The quickstart with a blueprint name for this page, followed by the page that builds on it. */
const shopOf = (page: string): string =>
  pages.scriptOf("quickstart.md", page).replaceAll(/"(shop)"/gi, `"$1-${page.replace(".md", "")}"`);

/** Saves a program of the page under the file name that the page uses. */
async function save(page: string, language: string, file: string): Promise<void> {
  const [, program] = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "m").exec(readPage(page)) ?? [];
  if (program === undefined) throw new Error(`${page} has no ${language}`);
  await writeFile(join(pages.dir, file), program);
}

it("the commands of the handlers page start a handler that rejects unsigned requests and receives a failed event again", async () => {
  await symlink(join(import.meta.dirname, "../../node_modules"), join(pages.dir, "node_modules"));
  await save("handlers.md", "js", "handler.mjs");
  const port = String(await freePort());
  const script = shopOf("handlers.md")
    .replace("http://127.0.0.1:8090", `http://127.0.0.1:${port}`)
    .replace("node handler.mjs", `PORT=${port} node handler.mjs`);
  const output = await pages.run(
    `trap 'kill $HANDLER_PID' EXIT\n${script.replace("\nkill $HANDLER_PID", "")}`,
  );
  expectInOrder(output, ["401", ' {"total":7}', "responded 503", ' {"total":8}', '"matched":']);
});

it("the commands of the Python page read and acknowledge new entries, and entries that a stopped reader left unacknowledged", async ({
  skip,
}) => {
  const hasRedis = (python: string): boolean => spawnSync(python, ["-c", "import redis"]).status === 0;
  const python = ["python3", "/usr/bin/python3"].find(hasRedis);
  skip(python === undefined, "no python3 here has the module redis");
  await save("python.md", "py", "reader.py");
  const address = `unix://${pages.redis.pathname}?db=${pages.redis.searchParams.get("db")}`;
  const cli = `redis-cli -s ${pages.redis.pathname} -n ${pages.redis.searchParams.get("db")}`;
  const abandon = `${cli} XREADGROUP GROUP "$SUBSCRIPTION" dead COUNT 1 STREAMS "$(${cli} SMEMBERS "inlet:sub:$SUBSCRIPTION")" '>'`;
  const start = '.venv/bin/python reader.py "$SUBSCRIPTION" &';
  const script = shopOf("python.md")
    .replace("REDIS_URL=unix://$PWD/data/run/redis.sock ", `export REDIS_URL='${address}'\n`)
    // A reader that dies with an unacknowledged event runs first.
    .replace(
      start,
      `echo abandoned $(${abandon} | grep -x 1)\nsed -i.bak s/60_000/1/ reader.py; ${python} reader.py "$SUBSCRIPTION" &`,
    );
  const output = await pages.run(`trap 'kill $READER_PID' EXIT\n${script.replace("\nkill $READER_PID", "")}`);
  expectInOrder(output, ["abandoned 1", 'order.created 1 {"total": 12.50}']);
  expectInOrder(output, ["abandoned 1", 'order.created py-1 {"total": 7}', '"pending":0']);
});

it("the commands of the page about Slack for all customers create an intake, and set the route keys of an install", async () => {
  const program = join(import.meta.dirname, "../../src/main.ts");
  const inlet = `inlet() { '${process.execPath}' '${program}' "$@"; }`;
  const output = await pages.run(`${inlet}\n${pages.scriptOf("slack-customers.md")}`);
  expectInOrder(output, ["/hooks/ch_", '"active"', '"acme"', '"T061EG9R6"', '"status":200', "enterprise_id"]);
  const apps = await pages.gateway.api<{ id: string; uid: string }[]>("GET", "/apps");
  const appId = apps.find(({ uid }) => uid === "acme")?.id;
  await until(async () => {
    const events = await pages.gateway.api<{ type: string }[]>("GET", `/apps/${appId}/events`);
    return events.some(({ type }) => type === "app_mention");
  });
});

it("the commands of the page about ChatGPT send an order to an agent's endpoint", async () => {
  const output = await pages.paste("quickstart.md", "chatgpt.md");
  expectInOrder(output, ["active", '"refreshBefore"', "http://127.0.0.1", 'order.created {"total":2500}']);
});
