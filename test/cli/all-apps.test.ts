import { expect, it } from "vitest";
import { type GivenChannel, givenChannel } from "../support/channels.ts";
import { runInlet } from "../support/command.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { until } from "../support/until.ts";
import { rows } from "./opened-commands.ts";

const gateway = givenGateway();

async function run(line: string): Promise<readonly { appId: string; id?: string }[]> {
  const env = { INLET_URL: gateway.origin, INLET_API_KEY: API_KEY };
  const { code, stdout, stderr } = await runInlet(line.split(" "), { env });
  expect([code, stderr]).toEqual([0, ""]);
  return rows(stdout);
}

async function givenQuarantined(uid: string): Promise<GivenChannel> {
  const channel = await givenChannel(gateway, {
    uid,
    config: {},
    events: [{ type: "a", typePath: "$.type" }],
  });
  expect(await channel.send({ type: "b" })).toMatchObject({ quarantined: 1 });
  return channel;
}

it("inlet deliveries and inlet quarantine list all apps, or the selected one", async () => {
  const [first, second] = [await givenQuarantined("first"), await givenQuarantined("second")];
  const appsOf = async (line: string) => (await run(line)).map(({ appId }) => appId);
  expect(await appsOf("quarantine")).toEqual([second.appId, first.appId]);
  expect(await appsOf(`quarantine --app ${first.appId}`)).toEqual([first.appId]);
  expect(await appsOf("quarantine --channel second")).toEqual([second.appId]);
  // Records of deliveries are written after the response.
  await until(async () => (await appsOf("deliveries")).length === 2);
  expect(await appsOf("deliveries --status quarantined")).toEqual([second.appId, first.appId]);
  expect(await appsOf(`deliveries --app ${first.appId}`)).toEqual([first.appId]);
  const env = { INLET_URL: gateway.origin, INLET_API_KEY: API_KEY };
  const appIds = [second.appId, first.appId];
  const uids = await Promise.all(
    appIds.map(async (id) => (await gateway.api<{ uid: string }>("GET", `/apps/${id}`)).uid),
  );
  for (const list of ["deliveries", "quarantine"]) {
    const { stdout } = await runInlet([list], { env, columns: 300 });
    const lines = stdout.split("\n").slice(1);
    expect(uids.map((uid, index) => lines[index]?.includes(` ${uid} `))).toEqual([true, true]);
    for (const id of appIds) expect(stdout).not.toContain(id);
  }
});

it("inlet events lists the events of all apps, or of the selected one, newest first", async () => {
  const channels: GivenChannel[] = [];
  for (const uid of ["here", "there"]) {
    const channel = await givenChannel(gateway, { uid, config: {}, events: [{ type: "a", idPath: "$.id" }] });
    expect(await channel.send({ id: `of-${uid}`, order: { total: 7 } })).toMatchObject({ published: 1 });
    channels.push(channel);
  }
  const idsOf = async (line: string) => (await run(line)).map(({ id }) => id);
  expect(await idsOf("events --type a")).toEqual(["of-there", "of-here"]);
  expect(await idsOf("events --type a --limit 1")).toEqual(["of-there"]);
  expect(await idsOf(`events --app ${channels[0]?.appId}`)).toEqual(["of-here"]);
  expect(await idsOf("events --channel there")).toEqual(["of-there"]);
  expect(await idsOf("events --id of-here")).toEqual(["of-here"]);
  expect(await idsOf("events --path $.id --value of-here")).toEqual(["of-here"]);
  expect(await idsOf("events --path $.order.total --limit 1")).toEqual(["of-there"]);
});

it("inlet sources lists the sources of all apps, or of the selected one", async () => {
  // A stream without a subscription is never opened.
  const config = { url: "https://example.com/" };
  const source = { kind: "sse", config, events: [{ type: "a" }] };
  const first = await givenChannel(gateway, { uid: "one", ...source });
  const second = await givenChannel(gateway, { uid: "two", ...source });
  expect((await run("sources")).map(({ appId }) => appId)).toEqual([second.appId, first.appId]);
  expect(await run(`sources --app ${first.appId}`)).toMatchObject([{ appId: first.appId, uid: "one" }]);
});
