import { createHash, randomUUID } from "node:crypto";
import { type OpenRedisOptions, openRedis, type RedisBus } from "../../src/bus/connection/redis.ts";
import { createPublish, type Publish, type PublishDeps } from "../../src/bus/publish/publish.ts";
import type { PublishBatch } from "../../src/bus/publish/publish-batch.ts";
import type { ChannelIdentity } from "../../src/event/channel.ts";
import type { OutgoingEvent } from "../../src/event/event.ts";
import { topicOf } from "../../src/event/topic.ts";
import { createId } from "../../src/lib/ids.ts";
import { createLog } from "../../src/log.ts";
import { opened } from "../support/opened.ts";
import { createTestRedis } from "../support/test-redis.ts";
import { CEILING_MS } from "../support/until.ts";

const signal = new AbortController().signal;
export const now = { signal };

export const openTestRedis = (url: string, options: Partial<OpenRedisOptions> = {}): Promise<RedisBus> =>
  openRedis({
    url,
    log: createLog({ level: "silent" }),
    durability: "none",
    durabilityAsserted: false,
    signal,
    ...options,
  });

export const testPublish = (redis: RedisBus, deps: Partial<PublishDeps> = {}): Publish =>
  createPublish({ redis, newQuarantineId: () => createId("qi", Date.now()), ...deps });

/** Avoids write timeouts on a busy machine. */
export const LONG_WRITE_TIMEOUT = { writeTimeoutMs: CEILING_MS };

/** Opens a Redis server and bus for one test file, as the gateway does but with a long write timeout. */
export function openedBus() {
  const server = opened(createTestRedis);
  const redis = opened(() => openTestRedis(server.url, LONG_WRITE_TIMEOUT));
  return { server, redis, publish: opened(() => testPublish(redis)) };
}

let channels = 0;

/** Returns a unique channel. */
export function testChannel(): ChannelIdentity {
  return {
    number: ++channels,
    uid: "github",
    kind: "webhook",
    appId: createId("app", Date.now()),
    organizationId: createId("org", Date.now()),
  };
}

export const testPolicy: PublishBatch["policy"] = {
  dedupeWindowMs: 86_400_000,
  conflict: "report",
  maxEntries: 1_000_000,
};

export const testTopic = (channel: ChannelIdentity, type = "push"): string =>
  topicOf({ organizationId: channel.organizationId, appId: channel.appId, channelUid: channel.uid, type });

export function testEvent(
  channel: ChannelIdentity,
  id: string = randomUUID(),
  options: { readonly type?: string; readonly data?: string; readonly remembered?: boolean } = {},
): OutgoingEvent {
  const { type = "push", data = `{"id":"${id}"}`, remembered = true } = options;
  return {
    id,
    type,
    topic: testTopic(channel, type),
    item: 0,
    identity: remembered ? hash(id).slice(0, 22) : "",
    digest: hash(data).slice(0, 11),
    fields: [
      ...["specversion", "1.0", "id", id, "source", "/apps/x/channels/y", "type", type],
      ...["time", "2026-01-01T00:00:00.000Z", "datacontenttype", "application/json", "data", data],
    ],
    bytes: data.length + 150,
  };
}

const hash = (text: string): string => createHash("sha256").update(text).digest("base64url");
