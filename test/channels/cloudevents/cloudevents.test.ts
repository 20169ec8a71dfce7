import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cloudevents } from "../../../src/channels/cloudevents/cloudevents.ts";
import { cloudEventsConfigSchema } from "../../../src/channels/cloudevents/config.ts";
import type { ChannelRuntime } from "../../../src/channels/kind.ts";
import { type Listener, startListener } from "../../../src/gateway/listener.ts";
import { createHooks } from "../../../src/http/hooks.ts";
import { createLog } from "../../../src/log.ts";
import { createTestReceive, pushChannel } from "../../ingest/receive-support.ts";

const BATCH = "application/cloudevents-batch+json";

describe("a CloudEvents channel that rejects batches", () => {
  let runtime: ChannelRuntime;
  let listener: Listener;
  let allowedOrigins: readonly string[];
  beforeEach(async () => {
    const unused = () => Promise.reject(new Error("no request is sent"));
    runtime = await cloudevents.start({
      outbound: { request: unused, fetch: () => unused } as never,
      clock: Date.now,
      log: createLog({ level: "silent" }),
      readInWorker: unused,
    });
    const channel = pushChannel();
    const receiveHook = createTestReceive(() => Promise.reject(new Error("no delivery is accepted")), {
      findChannel: () => ({
        ...channel,
        identity: { ...channel.identity, kind: "cloudevents" },
        kindConfig: cloudEventsConfigSchema.parse({ batch: "refuse", allowedOrigins }),
      }),
      runtimes: new Map([["cloudevents", runtime]]),
    });
    const { fetch } = createHooks(receiveHook);
    listener = await startListener({ host: "127.0.0.1", port: 0 }, fetch);
    listener.serve({ fetch, receiveHook });
  });
  afterEach(async () => {
    await listener[Symbol.asyncDispose]();
    await runtime[Symbol.asyncDispose]();
  });

  it.each([
    ["POST", [], 415, null],
    ["PUT", [], 405, "POST"],
    ["PUT", ["emitter.example.com"], 405, "POST, OPTIONS"],
  ])("rejects a batch sent with %s, with the allowed origins %j, with status %i", async (method, origins, status, allow) => {
    allowedOrigins = origins;
    const response = await fetch(`http://127.0.0.1:${listener.port}/hooks/ch_1`, {
      method,
      headers: { "content-type": BATCH },
      body: "[]",
    });
    expect([response.status, response.headers.get("allow")]).toEqual([status, allow]);
  });
});
