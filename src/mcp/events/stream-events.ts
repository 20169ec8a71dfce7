import { setTimeout as delay } from "node:timers/promises";
import { type EventsCaller, type EventsDeps, type FollowParams, follow } from "./events.ts";
import { EventsError, SUBSCRIPTION_ID } from "./revision.ts";

/** Connection of a stream to its client. */
export interface StreamConnection {
  readonly requestId: string | number;
  readonly notify: (method: string, params: Readonly<Record<string, unknown>>) => Promise<void>;
  /** Returns whether the client has accepted everything that was sent. */
  readonly isDrained: () => boolean;
  /** Returns whether the caller's token is still valid and has the permission `apps.read`. */
  readonly stillAllowed: () => Promise<boolean>;
}

const READ_EVERY_MS = 500;
const EVENTS_AT_ONCE = 50;
/** Interval of heartbeats. Proxies close connections without data after about a minute. */
const HEARTBEAT_EVERY_MS = 15_000;
/** Interval of checks of the token and the event type, in ms. Together with the 3 s cache of callers, a revoked key's streams end within 5 s. */
const CHECK_EVERY_MS = 1_500;
/** Maximum time that a client may accept no data, in ms. After that, the stream ends. */
const MAX_STALL_MS = 10_000;

/**
 * Sends the events after a cursor as notifications until the client disconnects, the gateway stops, the token becomes invalid, or the client
 * is too slow (`events/stream`). A client resumes with the cursor of the last event or heartbeat.
 */
export async function streamEvents(
  deps: EventsDeps,
  caller: EventsCaller,
  params: FollowParams,
  connection: StreamConnection,
): Promise<{ readonly _meta: Readonly<Record<string, unknown>> }> {
  const { start, seal, read, checkOpen } = await follow(deps, caller, params);
  const _meta = { [SUBSCRIPTION_ID]: connection.requestId };
  const notify = (kind: string, fields: Readonly<Record<string, unknown>>) =>
    connection.notify(`notifications/events/${kind}`, { ...fields, _meta });
  let { position } = start;
  let [sentAt, checkedAt] = [performance.now(), performance.now()];
  await notify("active", { cursor: seal(position), truncated: start.isTruncated });
  while (!caller.signal.aborted) {
    const found = await read(position, EVENTS_AT_ONCE);
    ({ position } = found);
    // SEP-3415 has no other notification with `truncated`.
    if (found.isTruncated) await notify("active", { cursor: seal(position), truncated: true });
    for (const { _meta: attributes, ...event } of found.events)
      await connection.notify("notifications/events/event", { ...event, _meta: { ...attributes, ..._meta } });
    const nowMs = performance.now();
    if (found.events.length > 0) sentAt = nowMs;
    else if (nowMs - sentAt >= HEARTBEAT_EVERY_MS) {
      await notify("heartbeat", { cursor: seal(position) });
      sentAt = nowMs;
    }
    if (nowMs - checkedAt >= CHECK_EVERY_MS) {
      checkedAt = nowMs;
      const error = await findReasonToEnd(connection, checkOpen);
      if (error) {
        await notify("terminated", { error });
        return { _meta };
      }
    }
    if (!(await waitUntilDrained(connection, caller.signal))) return { _meta };
    if (!found.more) await delay(READ_EVERY_MS, undefined, { signal: caller.signal }).catch(() => {});
  }
  return { _meta };
}

/** Returns the error with which a stream ends, or `undefined` while its caller may read it and its event type is open to agents. */
async function findReasonToEnd(
  { stillAllowed }: StreamConnection,
  checkOpen: () => Promise<unknown>,
): Promise<Pick<EventsError, "code" | "message" | "data"> | undefined> {
  try {
    if (!(await stillAllowed())) throw new EventsError("forbidden", "The token is no longer valid.");
    await checkOpen();
    return undefined;
  } catch (error) {
    if (!(error instanceof EventsError)) throw error;
    const { code, message, data } = error;
    return { code, message, data };
  }
}

/** Returns false if the client accepts no data for too long. */
async function waitUntilDrained({ isDrained }: StreamConnection, signal: AbortSignal): Promise<boolean> {
  const startedAt = performance.now();
  while (!isDrained() && !signal.aborted) {
    if (performance.now() - startedAt > MAX_STALL_MS) return false;
    await delay(DRAIN_CHECK_MS);
  }
  return true;
}

const DRAIN_CHECK_MS = 20;
