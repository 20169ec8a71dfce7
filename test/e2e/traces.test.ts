import { beforeAll, beforeEach, expect, it } from "vitest";
import { installApp } from "../support/channels.ts";
import { post } from "../support/deliver.ts";
import { createTestStores, fieldsOn, startTestGateway } from "../support/gateway.ts";
import { METRICS_TOKEN, readMetrics } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { createIntake } from "../support/intakes.ts";
import { opened } from "../support/opened.ts";
import { type ReceivedSpan, startOtlpReceiver } from "../support/otlp-receiver.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { startStreamServer } from "../support/stream-server.ts";
import { until } from "../support/until.ts";

const INTERNAL = 1;
const SERVER = 2;
const CLIENT = 3;
const PRODUCER = 4;
const CONSUMER = 5;
const SENDER = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };
const SAMPLED = `00-${SENDER.traceId}-${SENDER.spanId}-01`;
const UNSAMPLED = `00-${SENDER.traceId}-${SENDER.spanId}-00`;

const receiver = opened(startOtlpReceiver);
const handler = opened(startHandlerServer);
const upstream = opened(() => PollUpstream.start());
const stream = opened(startStreamServer);
const stores = opened(createTestStores);
/** The receiver's origin is only known once it listens. */
const settings = () => ({
  ...stores.env,
  INLET_ALLOW_NETWORKS: "127.0.0.0/8",
  OTEL_EXPORTER_OTLP_ENDPOINT: receiver.origin,
  OTEL_EXPORTER_OTLP_HEADERS: "x-team=events%20and%20more",
  OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
  OTEL_BSP_SCHEDULE_DELAY: "100",
  INLET_TRACE_URL: "https://tempo.example/trace/{traceId}",
});
const gateway = opened(() => startTestGateway(settings()));
const withoutFastPath = opened(() => startTestGateway({ ...settings(), INLET_HTTP_FAST_PATH: "off" }));
/** Has no handlers, because their calls would not be traced. */
const silent = givenGateway({ INLET_ROLES: "hooks" }, { stores });

let appId = "";
let channels: ReadonlyMap<string, string>;
let topics: ReadonlyMap<string, string>;
beforeAll(async () => {
  const events = [{ type: "e", idPath: "$.id" }];
  const app = await installApp(gateway, [
    { uid: "plain", kind: "webhook", config: {}, events },
    { uid: "trusting", kind: "webhook", config: { trustTrace: true }, events },
    { uid: "cloud", kind: "cloudevents", config: {}, events: [{ type: "e" }] },
  ]);
  appId = app.id;
  channels = new Map(app.channels.map(({ id, uid }) => [uid, id]));
  topics = new Map(app.channels.map(({ uid }) => [uid, app.topicOf(uid, "e")]));
});
beforeEach(() => {
  receiver.respond = "accept";
});

let ids = 0;
async function send(
  /** Uid of a channel of the app, or id of another channel. */
  channel: string,
  headers: Readonly<Record<string, string>> = {},
  { origin }: { readonly origin: string } = gateway,
  body?: string,
) {
  const requestId = `request-${++ids}`;
  const response = await fetch(`${origin}/hooks/${channels.get(channel) ?? channel}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-request-id": requestId, ...headers },
    body: body ?? JSON.stringify({ id: requestId }),
  });
  return { requestId, status: response.status, body: await response.text() };
}

const findRoot = (requestId: string): ReceivedSpan | undefined =>
  receiver.spans.find(({ attributes }) => attributes["inlet.request.id"] === requestId);

/** Returns the spans of a request's trace: that of the request first. */
async function traceOf(requestId: string): Promise<readonly ReceivedSpan[]> {
  await until(() => findRoot(requestId) !== undefined);
  const root = findRoot(requestId);
  return receiver.spans
    .filter(({ traceId }) => traceId === root?.traceId)
    .sort((a, b) => Number(b.kind === SERVER) - Number(a.kind === SERVER));
}

const lastOf = async (uid: string, field: string) =>
  (await fieldsOn(stores, topics.get(uid) ?? "", field)).at(-1);

const TRANSPORTS = [
  ["fast path", () => gateway],
  ["node:http", () => withoutFastPath],
] as const;

/** Waits for the record of an app's delivery. */
async function recordOf(app: string, query: string) {
  const path = `/apps/${app}/deliveries?${query}`;
  const read = () => gateway.api<readonly Record<"traceId" | "traceUrl", unknown>[]>("GET", path);
  await until(async () => (await read()).length > 0);
  const [record] = await read();
  return record;
}

it.each(
  TRANSPORTS,
)("exports the spans of a delivery with a link to the sender's trace (%s)", async (_, find) => {
  const { requestId, status } = await send("plain", { traceparent: SAMPLED }, find());
  expect(status).toBe(200);
  const [server, producer, ...others] = await traceOf(requestId);
  expect(others).toEqual([]);
  expect(server).toMatchObject({
    name: "POST /hooks/{channelId}",
    kind: SERVER,
    parentSpanId: "",
    links: [SENDER],
    status: 0,
    resource: { "service.name": "inlet", "deployment.environment.name": "test" },
    attributes: {
      "http.request.method": "POST",
      "http.route": "/hooks/{channelId}",
      "http.response.status_code": 200,
      "inlet.channel.uid": "plain",
      "inlet.result": "accepted",
      "inlet.events.published": 1,
    },
  });
  expect(server?.traceId).not.toBe(SENDER.traceId);
  expect(producer).toMatchObject({
    kind: PRODUCER,
    parentSpanId: server?.spanId,
    attributes: {
      "messaging.system": "inlet",
      "messaging.operation.name": "send",
      "messaging.batch.message_count": 1,
    },
  });
  expect(producer?.name).toBe(`send ${producer?.attributes["messaging.destination.template"]}`);
  expect(server?.startMs).toBeLessThanOrEqual(producer?.startMs ?? 0);
  expect(producer?.startMs).toBeLessThanOrEqual(producer?.endMs ?? 0);
  expect(producer?.endMs).toBeLessThanOrEqual(server?.endMs ?? 0);

  const written = `00-${producer?.traceId}-${producer?.spanId}-01`;
  expect([await lastOf("plain", "traceparent"), await lastOf("plain", "inlettrace")]).toEqual([
    written,
    written,
  ]);
  expect(receiver.requests.at(-1)).toMatchObject({
    path: "/v1/traces",
    headers: { "content-type": "application/x-protobuf", "x-team": "events and more" },
  });
  // The address is a credential, and the payload belongs to the sender.
  const text = JSON.stringify([server, producer]);
  expect(text).not.toContain(channels.get("plain"));
});

it.each([
  [
    "polling",
    () => {
      upstream.insert();
      return {
        run: "always",
        request: { url: `${upstream.origin}/rows` },
        schedule: { intervalSeconds: 5 },
        discriminator: { by: "seenSet" },
        itemId: "$.id",
        itemsPath: "$.rows",
        startAt: "earliest",
      };
    },
  ],
  [
    "sse",
    () => {
      stream.make(1);
      return { run: "always", url: stream.url };
    },
  ],
])("exports the spans of a delivery that the gateway has fetched (%s)", async (kind, givenSource) => {
  const events = [{ type: "fetched" }];
  const fetched = await installApp(gateway, [{ uid: "source", kind, config: givenSource(), events }]);
  const findSpan = () =>
    receiver.spans.find(
      ({ name, attributes }) => name === `receive ${kind}` && attributes["inlet.app.id"] === fetched.id,
    );
  await until(() => findSpan() !== undefined);
  const root = findSpan();
  expect(root).toMatchObject({
    kind: CONSUMER,
    parentSpanId: "",
    attributes: { "inlet.events.published": 1 },
  });
  const producer = receiver.spans.find(({ parentSpanId }) => parentSpanId === root?.spanId);
  expect(producer).toMatchObject({ kind: PRODUCER, traceId: root?.traceId });
  expect(await fieldsOn(stores, fetched.topicOf("source", "fetched"), "inlettrace")).toEqual([
    `00-${producer?.traceId}-${producer?.spanId}-01`,
  ]);
  expect(await recordOf(fetched.id, "order=newest")).toMatchObject({ traceId: root?.traceId });
});

it("exports the span of a poll with those of its requests, without the address that it requests", async () => {
  upstream.insert();
  const config = {
    run: "always",
    request: { url: `${upstream.origin}/rows?key=secret-key`, headers: { "x-key": "secret-key" } },
    schedule: { intervalSeconds: 5 },
    discriminator: { by: "seenSet" },
    itemId: "$.id",
    itemsPath: "$.rows",
    startAt: "earliest",
  };
  const channel = { uid: "polled", kind: "polling", config, events: [{ type: "fetched" }] };
  const app = await installApp(gateway, [channel]);
  const find = (name: string) =>
    receiver.spans.find(
      (span) => span.name === name && span.attributes["inlet.app.id"] === app.id && span.links.length > 0,
    );
  await until(() => find("receive polling") !== undefined);
  const [link] = find("receive polling")?.links ?? [];
  const findPoll = () => receiver.spans.find(({ spanId }) => spanId === link?.spanId);
  await until(() => findPoll() !== undefined);
  const poll = findPoll();
  expect(poll).toMatchObject({
    name: "poll polling",
    kind: INTERNAL,
    parentSpanId: "",
    attributes: { "inlet.result": "done", "inlet.channel.uid": "polled" },
  });
  const requests = receiver.spans.filter(({ parentSpanId }) => parentSpanId === poll?.spanId);
  const { hostname, port } = new URL(upstream.origin);
  expect(requests[0]).toMatchObject({
    name: "GET",
    kind: CLIENT,
    traceId: poll?.traceId,
    attributes: {
      "http.request.method": "GET",
      "http.response.status_code": 200,
      "server.address": hostname,
      "server.port": Number(port),
    },
  });
  const text = JSON.stringify([poll, requests]);
  expect(text).not.toMatch(/secret-key|rows/);
});

it("continues the sender's trace on a channel that trusts it, and follows its decision to sample", async () => {
  const unsampled = await send("trusting", { traceparent: UNSAMPLED });
  expect(await lastOf("trusting", "traceparent")).toBe(UNSAMPLED);
  const { requestId } = await send("trusting", { traceparent: SAMPLED });
  const [server] = await traceOf(requestId);
  expect(server).toMatchObject({ traceId: SENDER.traceId, parentSpanId: SENDER.spanId, links: [] });
  expect(findRoot(unsampled.requestId)).toBeUndefined();
  expect(await lastOf("trusting", "traceparent")).toMatch(`00-${SENDER.traceId}-`);
});

it("keeps the `traceparent` of a CloudEvent and drops its `inlettrace`", async () => {
  const { requestId } = await send("cloud", {
    "ce-specversion": "1.0",
    "ce-type": "e",
    "ce-id": "1",
    "ce-source": "/s",
    "ce-traceparent": SAMPLED,
    "ce-inlettrace": SAMPLED,
  });
  const [, producer] = await traceOf(requestId);
  expect(await lastOf("cloud", "traceparent")).toBe(SAMPLED);
  expect(await lastOf("cloud", "inlettrace")).toBe(`00-${producer?.traceId}-${producer?.spanId}-01`);
});

it.each(
  TRANSPORTS,
)("exports the span of a rejected delivery, whose trace id is in the response, the log and the record (%s)", async (_, find) => {
  const events = [{ type: "e" }];
  const config = { verification: { scheme: "hmac", name: "x-signature" } };
  const closed = await installApp(gateway, [{ uid: "closed", kind: "webhook", config, events }]);
  const { requestId, status, body } = await send(closed.channels[0]?.id ?? "", {}, find());
  expect(status).toBe(401);
  const [server, ...others] = await traceOf(requestId);
  expect(others).toEqual([]);
  expect(server).toMatchObject({
    status: 0,
    attributes: { "http.response.status_code": 401, "inlet.result": "unverified" },
  });
  const traceId = server?.traceId;
  expect(JSON.parse(body)).toEqual({ code: "unauthenticated", message: expect.any(String), traceId });
  const line = find().lines.find((one) => one.requestId === requestId);
  expect(line).toMatchObject({ event: "hook.refused", traceId });
  expect(await recordOf(closed.id, `requestId=${requestId}`)).toMatchObject({
    traceId,
    traceUrl: `https://tempo.example/trace/${traceId}`,
  });
});

it("names no trace in the response and the record of a delivery that is not sampled", async () => {
  const config = { onInvalid: "reject", onNoMatch: "reject" };
  const events = [{ type: "e", idPath: "$.id" }];
  const strict = await installApp(gateway, [{ uid: "strict", kind: "webhook", config, events }]);
  const { requestId, body } = await send(strict.channels[0]?.id ?? "", {}, silent, "{}");
  expect(Object.keys(JSON.parse(body))).toEqual(["code", "message", "details"]);
  const record = await recordOf(strict.id, `requestId=${requestId}`);
  expect(record).toMatchObject({ traceId: null, traceUrl: null });
});

it("traces the call of a handler with a link to the span that published the event", async () => {
  const { id } = await gateway.api<{ id: string }>("POST", `/apps/${appId}/events/subscribe`, {
    eventUid: "*",
    handler: { url: handler.urlOf("/traced") },
  });
  const { requestId } = await send("plain", { traceparent: SAMPLED });
  const [, producer] = await traceOf(requestId);
  const find = () => receiver.spans.find(({ links }) => links[0]?.spanId === producer?.spanId);
  await until(() => find() !== undefined);
  const span = find();
  expect(span).toMatchObject({
    kind: CONSUMER,
    parentSpanId: "",
    links: [{ traceId: producer?.traceId, spanId: producer?.spanId }],
    attributes: { "messaging.destination.subscription.name": id, "http.response.status_code": 200 },
  });
  expect(handler.at("/traced").at(-1)?.headers.traceparent).toBe(`00-${span?.traceId}-${span?.spanId}-01`);
});

it.each(
  TRANSPORTS,
)("exports the trace of a delivery as an exemplar to a scraper that accepts OpenMetrics (%s)", async (_, find) => {
  const { requestId } = await send("plain", {}, find());
  const [server] = await traceOf(requestId);
  const scrape = async (accept: string) => {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}`, accept };
    const response = await fetch(`${find().origin}/metrics`, { headers });
    return { type: response.headers.get("content-type"), text: await response.text() };
  };
  // The header of Prometheus 3.
  const rich = await scrape(
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
  );
  expect(rich.type).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
  expect(rich.text).toMatch(
    new RegExp(
      `^inlet_hook_duration_seconds_bucket\\{outcome="ok",.* # \\{trace_id="${server?.traceId}"\\}`,
      "m",
    ),
  );
  for (const accept of ["*/*", "text/plain"]) {
    const plain = await scrape(accept);
    expect(plain.type).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(plain.text).not.toContain("trace_id");
  }
});

it("links a redrive to the span that published the delivery first", async () => {
  const { requestId } = await send("plain", {}, gateway, "{}");
  const [, producer] = await traceOf(requestId);
  const path = `/apps/${appId}/quarantine`;
  const records = await gateway.api<readonly { id: string; channelUid: string }[]>("GET", path);
  const item = records.find(({ channelUid }) => channelUid === "plain");
  await gateway.api("POST", `${path}/${item?.id}/redrive`, {});
  const find = () => receiver.spans.find(({ name }) => name === "redrive webhook");
  await until(() => find() !== undefined);
  expect(find()).toMatchObject({
    links: [{ traceId: producer?.traceId, spanId: producer?.spanId }],
    attributes: { "inlet.events.published": 0, "inlet.events.quarantined": 1 },
  });
});

it("links each call of a replay to the span that published the event first", async () => {
  const events = [{ type: "e", idPath: "$.id" }];
  const app = await installApp(gateway, [{ uid: "main", kind: "webhook", config: {}, events }]);
  const subscriptions = `/apps/${app.id}`;
  const { id } = await gateway.api<{ id: string }>("POST", `${subscriptions}/events/subscribe`, {
    eventUid: "*",
    handler: { url: handler.urlOf("/replayed") },
  });
  const { requestId, body } = await send(app.channels[0]?.id ?? "");
  const [, producer] = await traceOf(requestId);
  const findCalls = () => receiver.spans.filter(({ links }) => links[0]?.spanId === producer?.spanId);
  await until(() => findCalls().length === 1);
  const [{ topic, entryId }] = JSON.parse(body).events;
  const entries = [{ topic, entryId }];
  await gateway.api("POST", `${subscriptions}/subscriptions/${id}/replay`, { entries });
  await until(() => findCalls().length === 2);
  const calls = findCalls();
  for (const call of calls) {
    const link = { traceId: producer?.traceId, spanId: producer?.spanId };
    expect(call).toMatchObject({ kind: CONSUMER, parentSpanId: "", links: [link] });
  }
  expect(new Set(calls.map(({ traceId }) => traceId)).size).toBe(2);
});

it.each(
  TRANSPORTS,
)("exports one trace of an intake's delivery, with a span for each install that receives items (%s)", async (_, find) => {
  const intake = await createIntake(gateway);
  const tenant = await intake.addOrganization("Tenant");
  const installs = [await tenant.install(), await tenant.install()];
  await Promise.all(installs.map((install, n) => intake.setKeys(install, [`team-${n}`])));
  const requestId = `intake-${++ids}`;
  const text = JSON.stringify({ events: ["team-0", "team-1", "none"].map((team) => ({ id: team, team })) });
  const url = intake.url.replace(gateway.origin, find().origin);
  const sent = await post(url, text, { ...intake.signed(text), "x-request-id": requestId });
  expect(sent.body).toMatchObject({ published: 2, quarantined: 1 });
  const spans = await traceOf(requestId);
  expect(spans).toHaveLength(4);
  const server = spans.find(({ kind }) => kind === SERVER);
  const route = spans.find(({ name }) => name === "route webhook");
  expect(server?.attributes).toMatchObject({ "inlet.result": "routed", "inlet.events.published": 2 });
  expect(route).toMatchObject({ kind: INTERNAL, parentSpanId: server?.spanId });
  for (const install of installs) {
    const own = spans.find(({ attributes }) => attributes["inlet.app.id"] === install.appId);
    expect(own).toMatchObject({
      kind: PRODUCER,
      parentSpanId: route?.spanId,
      attributes: { "inlet.organization.id": tenant.organizationId, "messaging.batch.message_count": 1 },
    });
    expect(await fieldsOn(stores, install.topic, "inlettrace")).toEqual([
      `00-${own?.traceId}-${own?.spanId}-01`,
    ]);
  }
});

it("keeps the sender's `traceparent` without a receiver", async () => {
  await send("plain", { traceparent: SAMPLED }, silent);
  expect(await lastOf("plain", "traceparent")).toBe(SAMPLED);
  expect(await fieldsOn(stores, topics.get("plain") ?? "", "inlettrace")).not.toContain(SAMPLED);
});

it("accepts events while the receiver fails, reports the failure once, and recovers", async () => {
  const warnings = () => gateway.lines.filter(({ event }) => event === "traces.failing").length;
  receiver.respond = 400;
  expect((await send("plain")).status).toBe(200);
  await until(() => warnings() === 1);
  receiver.respond = "hang";
  const before = receiver.requests.length;
  expect((await send("plain")).status).toBe(200);
  await until(() => receiver.requests.length > before);
  expect((await send("plain")).status).toBe(200);
  expect(await readMetrics(gateway.origin)).toMatch(/inlet_spans_total\{result="failed"\} [1-9]/);
  receiver.respond = "accept";
  await until(() => gateway.lines.some(({ event }) => event === "traces.exported"));
  const { requestId } = await send("plain");
  expect(await traceOf(requestId)).toHaveLength(2);
  expect(warnings()).toBe(1);
});
