import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createSession } from "better-sse";
import { expect, it } from "vitest";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";

const PAGE = readFileSync(new URL("../../src/docs/sources.md", import.meta.url), "utf8");
const WIKI = "https://stream.wikimedia.org";
const GITHUB = "https://api.github.com";

interface App {
  readonly id: string;
  readonly organizationId: string;
  readonly channels: readonly { readonly id: string; readonly uid: string }[];
}

function quotedAfter(call: string): string {
  const at = PAGE.indexOf(`${call} '`);
  const [, text] = /^'([^']*)'/.exec(PAGE.slice(at + call.length + 1)) ?? [];
  if (at < 0 || text === undefined) throw new Error(`the page has no ${call}`);
  return text;
}

/** Answers like both servers of the example: a stream, and a list of what happened, newest first. */
async function startServers() {
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
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

it("the sources of the page are fetched as it says", async () => {
  const [started, startedServers] = await Promise.all([createTestStores(), startServers()]);
  await using stores = started;
  await using servers = startedServers;
  await using gateway = await startTestGateway({ ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" });
  const text = quotedAfter("post /blueprints");
  for (const origin of [WIKI, GITHUB]) expect(text).toContain(`"${origin}/`);
  const body = JSON.parse(text.replace(WIKI, servers.origin).replace(GITHUB, servers.origin));
  const blueprint = await gateway.api<{ readonly id: string }>("POST", "/blueprints", body);
  const app = await gateway.api<App>("POST", "/apps/install", { blueprintId: blueprint.id });
  const subscribe = JSON.parse(quotedAfter('post "/apps/$APP/events/subscribe"'));
  await gateway.api("POST", `/apps/${app.id}/events/subscribe`, subscribe);

  const onTopic = async (name: string): Promise<readonly (readonly string[])[]> => {
    const topic = `events.${app.organizationId}.apps.app.event_received.${app.id}.${name}`;
    const entries = await stores.client.xrange(topic, "-", "+");
    return entries.map(([, fields]) =>
      ["id", "data"].map((field) => fields[fields.indexOf(field) + 1] ?? ""),
    );
  };
  await until(async () => (await onTopic("repo.PushEvent")).length === 4);
  expect(await onTopic("repo.PushEvent")).toEqual(
    ["10", "11", "12", "13"].map((id) => [id, `{"head":"of ${id}"}`]),
  );
  await until(async () => (await onTopic("wiki.edit")).length === 1);
  expect(await onTopic("wiki.edit")).toEqual([["a", '{"type":"edit","title":"One"}']]);
  const stateOf = async (uid: string): Promise<string> => {
    const id = app.channels.find((channel) => channel.uid === uid)?.id;
    return (await gateway.api<{ readonly state: string }>("GET", `/apps/${app.id}/channels/${id}/source`))
      .state;
  };
  await until(async () => `${await stateOf("wiki")} ${await stateOf("repo")}` === "open waiting");
});
