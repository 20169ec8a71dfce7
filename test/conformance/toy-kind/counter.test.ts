import { createServer } from "node:http";
import { expect, it } from "vitest";
import { channelKinds } from "../../../src/channels/kinds.ts";
import { installApp } from "../../support/channels.ts";
import { createTestStores, fieldsOn, startTestGateway } from "../../support/gateway.ts";
import { listenLocally } from "../../support/local-server.ts";
import { until } from "../../support/until.ts";
import { describeChannelKind } from "../channel.suite.ts";
import { describeSource, type SourceUpstream } from "../source.suite.ts";
import { counter } from "./counter.ts";

/** The registered kinds plus this one. */
const KINDS = new Map([...channelKinds, [counter.kind, counter] as const]);

async function openUpstream(): Promise<SourceUpstream> {
  let made = 0;
  const server = createServer((request, response) => {
    const after = Number(new URL(request.url ?? "/", "http://localhost").searchParams.get("after"));
    response.end(JSON.stringify(Array.from({ length: made - after }, (_, at) => after + at + 1)));
  });
  const local = await listenLocally(server);
  return {
    ...local,
    config: { url: `${local.origin}/`, run: "always" },
    add: (count) => {
      made += count;
    },
  };
}

describeChannelKind({
  kind: counter,
  config: { url: "https://numbers.example/next" },
  refused: [["url", { url: "next" }]],
});
describeSource({
  kind: counter,
  openUpstream,
  numbersIn: ({ body }) => [JSON.parse(body.toString()).n],
});

it("a channel kind that is only registered at startup can be listed, documented, installed and run without changes to the gateway's code", async () => {
  await using stores = await createTestStores();
  await using upstream = await openUpstream();
  const env = { ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" };
  await using gateway = await startTestGateway(env, { channelKinds: KINDS });
  const { api } = gateway;
  const offered = await api<{ readonly kind: string }[]>("GET", "/channel-kinds");
  expect(offered.map(({ kind }) => kind)).toEqual([...KINDS.keys()]);
  const { components } = await api<{
    readonly components: { readonly schemas: Readonly<Record<string, object>> };
  }>("GET", "/openapi.json");
  expect(components.schemas.ChannelKindName).toMatchObject({ enum: [...KINDS.keys()] });
  for (const name of ["Channel", "NewChannel", "BlueprintChannel"]) {
    const mapping = { counter: `#/components/schemas/Counter${name}` };
    expect(components.schemas[name]).toMatchObject({ discriminator: { propertyName: "kind", mapping } });
    expect(components.schemas).toHaveProperty(`Counter${name}`);
  }
  expect(components.schemas.CounterConfig).toMatchObject({ properties: { url: {} } });

  const first = { type: "1", typePath: "$number" };
  const channel = { uid: "numbers", kind: "counter", config: upstream.config };
  const app = await installApp(gateway, [{ ...channel, events: [first, { type: "all" }] }]);
  expect(app.channels).toMatchObject([{ uid: "numbers", url: null }]);
  upstream.add(3);
  const ids = (type: string) => fieldsOn(stores, app.topicOf("numbers", type), "id");
  await until(async () => (await ids("all")).length === 3);
  expect(await ids("all")).toEqual(["1", "2", "3"]);
  expect(await ids("1")).toEqual(["1"]);
  upstream.add(1);
  await until(async () => (await ids("all")).length === 4);
});
