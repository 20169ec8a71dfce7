import { setTimeout as delay } from "node:timers/promises";
import type { Channel } from "../../channels/entity.ts";
import { parseExactly } from "../../event/exact-json.ts";
import type { SourceEntity } from "../../resources/apps/sources/schema.ts";
import { formatPath } from "../client/api.ts";
import type { Client } from "../client/command.ts";
import type { ApiEvent, App } from "../client/entities.ts";
import { channelOf, followEvents, positionOf } from "../client/event-stream.ts";
import type { Forwarded } from "../listen/forward.ts";
import { formatEventLine } from "../output/event-line.ts";

/** Position in an app's events. */
export interface Position {
  readonly from: string;
  /** Entries at this position that are not shown, as `<topic>/<entryId>`. */
  readonly known: ReadonlySet<string>;
}

export interface FollowedChannel {
  readonly app: App;
  readonly channel: Channel;
  /** Whether the channel fetches its events. */
  readonly isFetched: boolean;
  readonly position: Position;
  /** URL of a local server that gets the events. */
  readonly to: string | undefined;
  readonly signal: AbortSignal;
  /** Called when a source keeps failing before its first event. */
  readonly onFailing: (message: string) => void;
}

/** Event that was shown, or that the local server has received. */
export type OnEvent = (
  event: Pick<ApiEvent, "id" | "type" | "topic" | "entryId"> & { readonly data?: unknown },
  forwarded: Forwarded | undefined,
) => void;

/** At most this many events of the newest millisecond are recognized as already shown. */
const KNOWN = 200;
/** Entry ids have the time of Redis, and channels have the time of the gateway. */
const MAX_CLOCK_SKEW_MS = 60_000;
const SOURCE_CHECK_MS = 2_000;
const FORWARD_TIMEOUT_MS = 30_000;

/**
 * Returns the position after the channel's existing events. A channel that fetches its events starts with the newest one, because
 * its next event may take long.
 */
export async function findPosition(
  { api }: Client,
  app: App,
  { uid, createdAt }: Channel,
  { isFetched }: Pick<FollowedChannel, "isFetched">,
): Promise<Position> {
  const limit = isFetched ? 1 : KNOWN;
  const query = { channel: uid, order: "newest", limit };
  const events = await api.get<readonly ApiEvent[]>(formatPath("apps", app.id, "events"), query);
  const [newest] = events;
  const [time] = newest?.entryId.split("-", 1) ?? [];
  return {
    from: positionOf(time === undefined ? Date.parse(createdAt) - MAX_CLOCK_SKEW_MS : Number(time)),
    known: new Set(isFetched ? [] : events.map(keyOf)),
  };
}

const keyOf = ({ topic, entryId }: Pick<ApiEvent, "topic" | "entryId">): string => `${topic}/${entryId}`;

/** Shows the events of a channel after a position, or forwards them to a local server, until the signal aborts. */
export async function followChannel(
  client: Client,
  options: FollowedChannel,
  onEvent: OnEvent,
): Promise<void> {
  const { api, io, output } = client;
  const { app, channel, isFetched, position, to, signal } = options;
  const following = new AbortController();
  const watching = isFetched ? watchSource(client, options, following.signal) : undefined;
  const whenShown: OnEvent = (event, forwarded) => {
    following.abort();
    onEvent(event, forwarded);
  };
  try {
    if (to !== undefined) return await forwardAll(client, { ...options, to }, whenShown);
    const steps = followEvents(api, {
      env: io.env,
      appId: app.id,
      from: position.from,
      signal,
      onWaiting(reason) {
        if (reason !== undefined) output.note(`Waiting for the gateway: ${reason}`, "yellow");
      },
    });
    for await (const { event } of steps) {
      if (event === undefined) continue;
      const parsed = parseExactly(event) as ApiEvent;
      if (channelOf(parsed.topic) !== channel.uid || position.known.has(keyOf(parsed))) continue;
      output.say(formatEventLine(parsed, output));
      whenShown(parsed, undefined);
      if (signal.aborted) return;
    }
  } finally {
    following.abort();
    await watching;
  }
}

async function forwardAll(
  client: Client,
  { app, channel, position, to, signal }: FollowedChannel & { readonly to: string },
  onEvent: OnEvent,
): Promise<void> {
  const { listen } = await import("../listen/listen.ts");
  const { findListenSecret } = await import("../listen/state.ts");
  await listen(client, {
    app,
    url: to,
    channels: [channel.uid],
    types: [],
    from: position.from,
    known: position.known,
    secret: findListenSecret(client.io.env),
    timeoutMs: FORWARD_TIMEOUT_MS,
    signal,
    onForwarded: onEvent,
  });
}

/** Reports the errors of a source until its first event. */
async function watchSource(
  { api, output }: Client,
  { app, channel, signal, onFailing }: FollowedChannel,
  shown: AbortSignal,
): Promise<void> {
  const path = formatPath("apps", app.id, "channels", channel.uid, "source");
  const ending = AbortSignal.any([signal, shown]);
  let lastReported = "";
  while (!ending.aborted) {
    const source = await api.get<SourceEntity>(path).catch(() => undefined);
    // A healthy source can have a warning, such as a gap.
    const message = source?.health === "healthy" ? "" : (source?.lastError?.message ?? "");
    if (message !== "" && message !== lastReported && !ending.aborted)
      output.note(`The source fails, and Inlet retries: ${message}`, "yellow");
    lastReported = message;
    if (source?.health === "failing" && !ending.aborted) onFailing(message);
    await delay(SOURCE_CHECK_MS, undefined, { signal: ending }).catch(() => {});
  }
}
