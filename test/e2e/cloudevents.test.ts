import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { CloudEvent, emitterFor, HTTP, httpTransport, Mode } from "cloudevents";
import { generateCACertificate, getLocal, type Mockttp } from "mockttp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type InstalledApp, installApp } from "../support/channels.ts";
import { createTestStores, startTestGateway, type TestGateway, type TestStores } from "../support/gateway.ts";
import { until } from "../support/until.ts";

const TYPE = "com.example.order.created";
const events = [{ type: TYPE }];

let stores: TestStores;
let gateway: TestGateway;
let sender: Mockttp;
let app: InstalledApp;
let channels: ReadonlyMap<string, string>;
const authorities = getCACertificates("default");

beforeAll(async () => {
  stores = await createTestStores();
  // The gateway calls the callback over HTTPS, so its process must trust the authority of the callback's certificate.
  const authority = await generateCACertificate();
  setDefaultCACertificates([...authorities, authority.cert]);
  sender = getLocal({ https: { key: authority.key, cert: authority.cert } });
  await sender.start();
  gateway = await startTestGateway({ ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8,::1/128" });
  app = await installApp(gateway, [
    { uid: "open", kind: "cloudevents", config: { answer: "outcome" }, events },
    { uid: "broker", kind: "cloudevents", events },
    { uid: "strict", kind: "cloudevents", config: { onInvalid: "reject", batch: "refuse" }, events },
    {
      uid: "restricted",
      kind: "cloudevents",
      config: { allowedOrigins: ["emitter.example.com"], limits: { requestsPerSecond: 10 } },
      events,
    },
  ]);
  channels = new Map(app.channels.map(({ id, uid }) => [uid, id]));
});
afterAll(async () => {
  setDefaultCACertificates(authorities);
  await gateway?.[Symbol.asyncDispose]();
  await sender?.stop();
  await stores?.[Symbol.asyncDispose]();
});

const addressOf = (uid: string): string => `${gateway.origin}/hooks/${channels.get(uid)}`;

async function send(uid: string, headers: Record<string, string>, body = "", method = "POST") {
  const init = method === "OPTIONS" ? { method, headers } : { method, headers, body };
  const response = await fetch(addressOf(uid), init);
  const text = await response.text();
  // biome-ignore lint/suspicious/noExplicitAny: an answer of the gateway
  const answer: any = text === "" ? undefined : JSON.parse(text);
  return { status: response.status, headers: response.headers, body: answer };
}

const structured = { "content-type": "application/cloudevents+json" };
const batched = { "content-type": "application/cloudevents-batch+json" };
const eventOf = (id: string, others: object = {}) => ({
  specversion: "1.0",
  type: TYPE,
  source: "/orders",
  id,
  ...others,
});

async function entriesOf(uid: string): Promise<readonly (readonly string[])[]> {
  return (await stores.client.xrange(app.topicOf(uid, TYPE), "-", "+")).map(([, fields]) => fields);
}

describe("a CloudEvents channel", () => {
  it("publishes each event of the `cloudevents` library exactly once, in binary, structured and batched mode", async () => {
    const event = new CloudEvent({ ...eventOf("E1"), subject: "123", comexample: "x", data: { n: 1 } });
    const body = `${JSON.stringify([event.cloneWith({ id: "E2" }), event.cloneWith({ id: "E3" })])}`;
    const emit = (mode: Mode) => emitterFor(httpTransport(addressOf("open")), { mode })(event);
    // The emitter returns the response as text only, so the test does not check it.
    await emit(Mode.BINARY);
    await emit(Mode.STRUCTURED);
    const batch = await send("open", batched, body);
    expect([batch.status, batch.body.published]).toEqual([200, 2]);
    const entries = await entriesOf("open");
    expect(entries.map((fields) => fields[3])).toEqual(["E1", "E2", "E3"]);
    // The library can parse the stored entry back into the original event.
    const [first = []] = entries;
    const fields = Object.fromEntries(first.flatMap((name, at) => (at % 2 ? [] : [[name, first[at + 1]]])));
    const { data, ...attributes } = fields;
    const headers = Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value]),
    );
    const read = HTTP.toEvent({
      headers: { ...headers, "content-type": attributes.datacontenttype ?? "" },
      body: data ?? "",
    });
    expect(read).toMatchObject({
      id: "E1",
      source: "/orders",
      subject: "123",
      comexample: "x",
      data: { n: 1 },
    });
  });

  it("responds to an accepted event with an empty body by default, as Knative brokers require", async () => {
    const { status, headers, body } = await send("broker", structured, JSON.stringify(eventOf("K1")));
    expect([status, headers.get("content-type"), body]).toEqual([200, null, undefined]);
    expect((await entriesOf("broker")).map((fields) => fields[3])).toEqual(["K1"]);
  });

  it("quarantines an invalid event of a batch and publishes the valid events", async () => {
    const { status, body } = await send(
      "open",
      batched,
      JSON.stringify([eventOf("B1"), eventOf(""), eventOf("B2")]),
    );
    expect([status, body.received, body.published]).toEqual([200, 3, 2]);
    expect(body.quarantine).toMatchObject([{ reason: "invalid_cloudevent", path: "id" }]);
    const kept = await gateway.api<{ detail: string }>(
      "GET",
      `/apps/${app.id}/quarantine/${body.quarantine[0].id}`,
    );
    expect(kept.detail).toBe("id must not be empty");
  });

  it("quarantines a known id with different data as a conflict, but accepts that id from another source as a new event", async () => {
    const answers = [];
    for (const others of [{ data: 1 }, { data: 1 }, { data: 2 }, { data: 2, source: "/others" }]) {
      answers.push((await send("open", structured, JSON.stringify(eventOf("C1", others)))).body);
    }
    expect(
      answers.map(({ published, duplicates, quarantined }) => [published, duplicates, quarantined]),
    ).toEqual([
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
      [1, 0, 0],
    ]);
    expect(answers[2].quarantine).toMatchObject([{ reason: "id_conflict" }]);
  });

  it("responds 415 to an unknown event format, and to a batch when its settings disallow batches", async () => {
    for (const type of ["application/cloudevents+avro", "application/cloudevents", "multipart/form-data"]) {
      expect((await send("open", { "content-type": type }, "x")).status).toBe(415);
    }
    expect((await send("strict", batched, "[]")).status).toBe(415);
  });

  it("responds 400 and names the invalid attribute when its settings reject invalid deliveries", async () => {
    const { status, body } = await send("strict", structured, JSON.stringify(eventOf("S1", { time: "now" })));
    expect([status, body.code]).toEqual([400, "invalid_parameters"]);
    expect(body.message).toBe(
      "The channel rejects this delivery, because an item is invalid or matches no definition.",
    );
    expect(body.details[0].path).toBe("body: time");
    expect(await entriesOf("strict")).toEqual([]);
  });

  it("rejects an event definition that sets idPath, because the specification defines where the id is", async () => {
    const wrong = { uid: "wrong", kind: "cloudevents", events: [{ type: "a", idPath: "$.id" }] };
    await expect(gateway.api("POST", `/apps/${app.id}/channels`, wrong)).rejects.toThrow("events[0].idPath");
  });
});

describe("a validation request (OPTIONS) of the CloudEvents webhook specification", () => {
  const validation = { "webhook-request-origin": "emitter.example.com", "webhook-request-rate": "1000" };

  it("is granted to an allowed origin, with at most the channel's own rate limit", async () => {
    const { status, headers } = await send("restricted", validation, "", "OPTIONS");
    expect(status).toBe(200);
    expect(headers.get("webhook-allowed-origin")).toBe("emitter.example.com");
    expect(headers.get("webhook-allowed-rate")).toBe("600");
    expect(headers.get("allow")).toBe("POST, OPTIONS");
  });

  it("gets 403 from any other origin, and 405 if the channel allows no origins at all", async () => {
    const other = await send(
      "restricted",
      { ...validation, "webhook-request-origin": "evil.example.com" },
      "",
      "OPTIONS",
    );
    expect([other.status, other.headers.get("webhook-allowed-origin")]).toEqual([403, null]);
    const none = await send("open", validation, "", "OPTIONS");
    expect([none.status, none.headers.get("allow")]).toEqual([405, "POST"]);
  });

  it.each([
    ["granted", "restricted", "200"],
    ["rejected", "open", "405"],
  ])("gets its response (%s) and a closed connection, even if its request body never ends", async (_, uid, status) => {
    const { port, pathname } = new URL(addressOf(uid));
    const begin = (text: string): Socket => {
      const socket = connect(Number(port), "127.0.0.1");
      socket.write(text);
      return socket;
    };
    // A keep-alive connection that has been served once and waits for its next request.
    const idle = begin("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(idle, "data");
    const headers = "Host: x\r\nWebHook-Request-Origin: emitter.example.com\r\nTransfer-Encoding: chunked";
    const validating = begin(`OPTIONS ${pathname} HTTP/1.1\r\n${headers}\r\n\r\n1\r\nx\r\n`);
    let text = "";
    validating.on("data", (bytes) => {
      text += bytes;
    });
    const closed = (socket: Socket): Promise<Socket> => once(socket, "close").then(() => socket);
    const first = await Promise.race([closed(validating), closed(idle)]);
    idle.destroy();
    expect([first === validating, text.slice(0, 12)]).toEqual([true, `HTTP/1.1 ${status}`]);
  });

  it("has its callback URL called over HTTPS, but never over HTTP", async () => {
    const callback = await sender.forGet("/confirm").thenReply(200);
    const plain = await sender.forGet("/plain").thenReply(200);
    const call = (url: string) =>
      send("restricted", { ...validation, "webhook-request-callback": url }, "", "OPTIONS");
    await call(`http://localhost:${sender.port}/plain`);
    await call(`https://localhost:${sender.port}/confirm?key=secret`);
    await until(async () => (await callback.getSeenRequests()).length > 0);
    const [request] = await callback.getSeenRequests();
    expect(request?.headers["webhook-allowed-origin"]).toBe("emitter.example.com");
    expect(request?.headers["webhook-allowed-rate"]).toBe("600");
    expect(await plain.getSeenRequests()).toEqual([]);
    expect(JSON.stringify(gateway.lines)).not.toContain("key=secret");
  });
});
