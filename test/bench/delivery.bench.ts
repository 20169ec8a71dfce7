/**
 * Compares each optimization of deliveries and rejections with the plain way in the same run. Ends with a line of JSON that contains the
 * ratios of the plain time to the optimized time.
 *
 * usage: node test/bench/delivery.bench.ts
 */
import { createHmac, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { Command } from "ioredis";
import { Counter, Registry } from "prom-client";
import { CommandBuffers, SentCommand } from "../../src/bus/connection/sent-command.ts";
import { encodeCall } from "../../src/bus/publish/publish-call.ts";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { isJsonData, readAttributes, readEvent } from "../../src/event/cloud-event.ts";
import { ValueCollector, type Values } from "../../src/event/values.ts";
import { ApiError } from "../../src/http/errors.ts";
import { collectHeaderValues } from "../../src/http/node-exchange.ts";
import { createId } from "../../src/lib/ids.ts";
import { withoutChannelIds } from "../../src/lib/secrets/channel-id.ts";
import { compileHmac } from "../../src/lib/secrets/hmac.ts";
import { redactTexts } from "../../src/lib/secrets/redact.ts";
import { createMetrics } from "../../src/metrics.ts";
import { compileRules, formatSource } from "../../src/normalize/compile.ts";
import { createPathCache } from "../../src/normalize/paths/jsonpath.ts";
import { channel, settings } from "../normalize/support.ts";
import { requestOf, senderOf } from "../verify/support.ts";
import { createComparison } from "./compare.ts";

/** Depth of the call stack at which a gateway's route runs. */
const CALL_DEPTH = 12;

const { compare, ratios } = createComparison();

const rawHeaders = [
  ...["Host", "hooks.example.com", "User-Agent", "GitHub-Hookshot/044aadd", "Content-Length", "468"],
  ...["Accept", "*/*", "Content-Type", "application/json", "X-GitHub-Event", "push"],
  ...["X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-GitHub-Hook-ID", "292430182"],
  ...["X-GitHub-Hook-Installation-Target-ID", "79929171", "X-Forwarded-For", "192.0.2.1"],
  ...["X-GitHub-Hook-Installation-Target-Type", "repository", "X-Forwarded-Proto", "https"],
];

/** Does the same work as a delivery: collects the headers, iterates over them, and reads two. */
function useHeaders(headers: Readonly<Record<string, unknown>>): number {
  let length = 0;
  for (const name in headers) if (headers[name] !== undefined) length += name.length;
  return headers["x-github-event"] === headers["x-github-delivery"] ? 0 : length;
}

/** The raw headers as an object, as Node parses them. */
const headers = Object.fromEntries(
  rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1] ?? ""]] : [])),
);
const arrived = { headers, rawHeaders } as unknown as IncomingMessage;

function valuesOfRaw(): Values {
  const values = new ValueCollector();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    values.add((rawHeaders[i] ?? "").toLowerCase(), rawHeaders[i + 1] ?? "");
  }
  return values.collected;
}

function valuesWithoutPrototype(): Readonly<Record<string, string | string[]>> {
  const values: Record<string, string | string[]> = Object.create(null);
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? "").toLowerCase();
    const value = rawHeaders[i + 1] ?? "";
    const before = values[name];
    if (before === undefined) values[name] = value;
    else if (typeof before === "string") values[name] = [before, value];
    else before.push(value);
  }
  return values;
}

compare(
  "headers, collected and read",
  { label: "object of a class", run: () => useHeaders(valuesOfRaw()) },
  { label: "without a prototype", run: () => useHeaders(valuesWithoutPrototype()) },
);

compare(
  "header names",
  { label: "taken from Node", run: () => collectHeaderValues(arrived) },
  { label: "parsed again", run: () => valuesOfRaw() },
);

const secret = "a-secret-of-the-bench";
const hmac = compileHmac("sha256", secret);
for (const bytes of [39, 468, 4_000]) {
  const body = randomBytes(bytes);
  compare(
    `HMAC-SHA256 of ${bytes.toLocaleString("en")} B`,
    { label: "two hashes", run: () => hmac([body]) },
    { label: "createHmac", run: () => createHmac("sha256", secret).update(body).digest() },
  );
}

/** Has the same fields as the gateway's errors, and also a stack trace. */
class PlainError extends Error {
  override readonly name = "PlainError";
  readonly code: string;
  readonly details = undefined;
  readonly headers = {};

  constructor(code: string, message: string) {
    super(message, { cause: undefined });
    this.code = code;
  }
}

const deeply = (depth: number, make: () => Error): Error => (depth === 0 ? make() : deeply(depth - 1, make));
compare(
  "an error response",
  {
    label: "without a stack",
    run: () => deeply(CALL_DEPTH, () => new ApiError("not_found", "There is no such channel.")),
  },
  {
    label: "with its stack",
    run: () => deeply(CALL_DEPTH, () => new PlainError("not_found", "There is no such channel.")),
  },
);

const sender = senderOf({});
const request = requestOf({ headers: collectHeaderValues(arrived), body: "{}" });
const hidden = new Set(["authorization", "cookie", "x-api-key"]);
compare(
  "a delivery without secret headers",
  { label: "one pass", run: () => sender.reject(request, "").redacted() },
  {
    label: "a filtered copy, redacted",
    run: () => {
      const { method, body, arrivedAtMs } = request;
      const kept = Object.entries(request.headers).filter(([name]) => !hidden.has(name));
      const headers = redactTexts(Object.fromEntries(kept), withoutChannelIds);
      return { method, headers, query: {}, body, arrivedAtMs };
    },
  },
);

const definitions = ["push", "issues", "pull_request"].map((type) => ({
  type,
  typePath: "$headers['x-github-event']",
  idPath: "$headers['x-github-delivery']",
  payloadPath: "$.repository",
}));
const source = { channel, profile: webhook.profile, config: settings(), definitions };
const paths = createPathCache(10_000);
compare(
  "compile a channel whose blueprint has others",
  { label: "paths shared", run: () => compileRules(source, paths) },
  { label: "each path compiled again", run: () => compileRules(source) },
);

let nowMs = Date.now();
compare(
  "an id",
  { label: "bytes of a pool", run: () => createId("req", nowMs++) },
  { label: "bytes requested each time", run: () => createId("req", nowMs++, randomBytes(8)) },
);

const { deliveries } = createMetrics();
const counter = new Counter({
  name: "deliveries",
  help: "For comparison",
  labelNames: ["kind", "result"] as const,
  registers: [new Registry()],
});
compare(
  "count a delivery",
  { label: "tally", run: () => deliveries.add("webhook", "published") },
  { label: "prom-client", run: () => counter.inc({ kind: "webhook", result: "published" }) },
);

const fields = [
  "specversion",
  "1.0",
  "id",
  "72d3162e",
  "source",
  "/apps/app_1/channels/main",
  "type",
  "push",
];
fields.push("time", "2026-01-01T00:00:00.000Z", "datacontenttype", "application/json", "data", '{"a":1}');
compare(
  "a topic entry as the reader's event",
  { label: "one object literal", run: () => readEvent(fields) },
  {
    label: "attributes set by name",
    run() {
      const { attributes, text = "" } = readAttributes(fields);
      const event: Record<string, unknown> = attributes;
      event.data = isJsonData(attributes.datacontenttype) ? JSON.parse(text) : text;
      return { event: Object.freeze(event), text };
    },
  },
);

/** Number of deliveries in a compared Redis call. Each body is decoded again, as for separate requests. */
const CALL_DELIVERIES = 30;
const buffers = new CommandBuffers();
const unused = new Socket();
for (const bytes of [468, 11_700]) {
  const body = Buffer.from(JSON.stringify("x".repeat(bytes)));
  const ids = ["1", "a".repeat(33), "72d3162e-cc78-11e3-81ab-4c9367dc0958"];
  const args = () => Array.from({ length: CALL_DELIVERIES }, () => [...ids, body.toString()]).flat();
  compare(
    `a call of ${CALL_DELIVERIES} deliveries of ${bytes} B, as bytes`,
    {
      label: "a reused buffer",
      run() {
        const command = new SentCommand("evalsha", args(), buffers);
        command.toWritable(unused);
        command.giveBack();
      },
    },
    {
      label: "ioredis' text",
      run: () => Buffer.from(new Command("evalsha", args(), { replyEncoding: "utf8" }).toWritable(unused)),
    },
  );
}

const limits = { mustWrite: false, quarantineLimits: "" };
const appId = "app_01h455vb4pex5vsknk084sn02q";
let entries = 0;
function callOf(policyOf: () => string, sourceOfChannel: () => string): readonly (string | Buffer)[] {
  const groups = Array.from({ length: CALL_DELIVERIES }, () => {
    const id = `72d3162e-${entries++}`;
    const ofEntry = ["specversion", "1.0", "id", id, "source", sourceOfChannel(), "type", "push"];
    ofEntry.push("time", "2026-01-01T00:00:00.000Z", "datacontenttype", "application/json", "data", "{}");
    const event = {
      id,
      type: "push",
      topic: "events.push",
      item: null,
      identity: "",
      digest: "",
      bytes: 100,
    };
    return { policy: policyOf(), bytes: 100, events: [{ ...event, fields: ofEntry }] };
  });
  return encodeCall(groups, limits);
}
const [windowMs, maxEntries, uid] = [86_400_000, 100_000, "hook"];
const policy = [windowMs, "r", maxEntries, "r"].join(" ");
const ofChannel = formatSource({ appId, uid });
compare(
  `what ${CALL_DELIVERIES} deliveries have in common`,
  {
    label: "kept",
    run: () =>
      callOf(
        () => policy,
        () => ofChannel,
      ),
  },
  {
    label: "made for each",
    run: () =>
      callOf(
        () => `${windowMs} r ${maxEntries} r`,
        () => `/apps/${appId}/channels/${uid}`,
      ),
  },
);

console.log(JSON.stringify(ratios));
