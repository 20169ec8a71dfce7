import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, it } from "vitest";
import { z } from "zod";
import { givenChannel } from "../support/channels.ts";
import { runInlet } from "../support/command.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { readPage } from "../support/pasted-pages.ts";
import { VERSION } from "./clients.ts";

const gateway = givenGateway();
const page = readPage("agents.md");

const find = (pattern: RegExp): string => {
  const [, found] = pattern.exec(page) ?? [];
  if (found === undefined) throw new Error(`the page has no ${pattern}`);
  return found;
};

const inlet = async (line: string): Promise<string> => {
  const env = { INLET_URL: gateway.origin, INLET_API_KEY: API_KEY };
  const { code, stdout, stderr } = await runInlet(line.split(" "), { env });
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
};

it("the page on agents creates a key, a configuration that connects a client, and a filter that selects events", async () => {
  const channel = await givenChannel(gateway, {
    uid: "github",
    events: [{ type: "issues" }],
  });
  const { key } = JSON.parse(await inlet(`${find(/npx inlet (keys create .+)$/m)} --output json`));
  const configuration = find(/```json\n( *\{\n *"mcpServers"[^`]+)```/)
    .replace("https://inlet.example", gateway.origin)
    .replace("<the key>", key);
  const { url, headers } = JSON.parse(configuration).mcpServers.inlet;
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode: { pin: VERSION } } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  const { isError = false } = await client.callTool({ name: find(/calls `(\w+)` first/) });
  expect(isError).toBe(false);

  await inlet(find(/`inlet (agents open [^`]+)`/));
  const { uid } = await gateway.api<{ uid: string }>("GET", channel.appPath);
  const params = JSON.parse(find(/```json\n(\{ "name"[^`]+"cursor": null \})\n```/).replace("acme", uid));
  const poll = (cursor: string | null) =>
    client.request(
      { method: "events/poll", params: { ...params, cursor } },
      z.looseObject({ cursor: z.string(), events: z.array(z.looseObject({ data: z.unknown() })) }),
    );
  const { cursor } = await poll(null);
  for (const action of ["closed", "opened"]) await channel.send({ action });
  expect((await poll(cursor)).events).toMatchObject([{ data: { action: "opened" } }]);
  await client.close();
});
