import { expect, it } from "vitest";
import { type HookServer, startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";

const server = opened(() => startHookServer());
const call = (...args: Parameters<HookServer["spine"]["api"]["call"]>) => server.spine.api.call(...args);

const VERIFIED = { verification: { scheme: "token", name: "x-token" }, secrets: [{ value: "a-secret" }] };
const send = (id: string, body: object) =>
  server.send(id, { body: JSON.stringify(body), headers: { "x-token": "a-secret" } });
const toBase64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64");
const ORDER_SCHEMA = { type: "object", required: ["id"], properties: { id: { type: "string" } } };

it.each([
  ["small", 10],
  // Bodies of more than 128 KiB are parsed in another thread.
  ["large", 200_000],
])("a %s document inside of a body is published with its own id, type and schema", async (_, size) => {
  const decode = { path: "$.message.data", as: "base64-json" };
  const inner = { typePath: "$.message.data.kind", idPath: "$.message.data.id" };
  const { id, appId, uid } = await server.open({ ...VERIFIED, preset: "google-pubsub", decode }, [
    { type: "order", ...inner, payloadPath: "$.message.data", schema: ORDER_SCHEMA },
  ]);
  const order = { kind: "order", id: "o1", note: "x".repeat(size) };
  const first = { message: { data: toBase64(order), messageId: "m1" }, deliveryAttempt: 1 };
  expect(JSON.parse((await send(id, first)).text)).toMatchObject({ published: 1, quarantined: 0 });
  expect(JSON.parse((await send(id, { ...first, deliveryAttempt: 2 })).text)).toMatchObject({
    duplicates: 1,
  });
  const { body: published } = await call("GET", `/apps/${appId}/events?channel=${uid}`);
  expect(published).toMatchObject([{ id: "o1", type: "order", data: order }]);
});

it("a text that cannot be decoded is quarantined, and can be redriven with another setting", async () => {
  const channel = await server.open(
    { ...VERIFIED, preset: "aws-sns", decode: { path: "$.Message", as: "json" } },
    [{ type: "Notification" }],
  );
  const notification = { Type: "Notification", MessageId: "m1", Message: "aGVsbG8=" };
  const { quarantine } = JSON.parse((await send(channel.id, notification)).text);
  expect(quarantine).toMatchObject([{ reason: "invalid_body" }]);
  const path = `/apps/${channel.appId}`;
  await call("PUT", `${path}/channels/${channel.id}`, {
    config: { decode: { path: "$.Message", as: "base64" } },
  });
  const stored = await call("GET", `${path}/quarantine/${quarantine[0].id}`);
  expect(stored.body).toMatchObject({
    detail: expect.stringContaining("decode.path $.Message: the text does not contain JSON"),
  });
  const redriven = await call("POST", `${path}/quarantine/${quarantine[0].id}/redrive`);
  expect(redriven.body).toMatchObject({ status: "released", events: [{ id: "m1", status: "published" }] });
  expect((await call("GET", `${path}/events?channel=${channel.uid}`)).body).toMatchObject([
    { data: { ...notification, Message: "hello" } },
  ]);
});

it("explain shows the values inside of the decoded document", async () => {
  const channel = await server.open({ decode: { path: "$.Message", as: "json" } }, [
    { type: "e", idPath: "$.Message.id" },
  ]);
  const { body } = await call("POST", `/apps/${channel.appId}/channels/${channel.id}/explain`, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ Message: '{"id":"inner"}' }),
    verify: false,
  });
  expect(JSON.stringify(body)).toContain('"inner"');
});

it.each([
  ["webhook", { path: "Message", as: "json" }, "config.decode.path", "a path must begin with $"],
  ["webhook", { path: "$headers.a", as: "json" }, "config.decode.path", "$headers"],
  ["webhook", { path: "$.Message", as: "xml" }, "config.decode.as", "base64-json"],
  ["cloudevents", { path: "$.data", as: "json" }, "config.decode", "must not be set"],
])("a channel of the kind %s with the setting %j is rejected", async (kind, decode, path, text) => {
  const { id } = await server.spine.install();
  const channel = { uid: "c", kind, config: { decode }, events: [{ type: "e" }] };
  const { status, body } = await call("POST", `/apps/${id}/channels`, channel);
  expect(status).toBe(400);
  expect(body.details).toMatchObject([{ path, message: expect.stringContaining(text) }]);
});
