import { formatPath } from "../client/api.ts";
import type { Client } from "../client/command.ts";
import type { App } from "../client/entities.ts";
import { channelOf, followEvents } from "../client/event-stream.ts";
import { escapeText } from "../output/escape.ts";
import { type ListenedEvent, readEntry } from "./entry.ts";
import { type Forwarded, forward } from "./forward.ts";
import { readKeys } from "./keys.ts";
import { openListenState } from "./state.ts";

export interface ListenOptions {
  readonly app: App;
  readonly url: string;
  /** Uids of the channels whose events are forwarded. Empty for all channels. */
  readonly channels: readonly string[];
  /** Event types to forward. Empty for all types. */
  readonly types: readonly string[];
  /** Stream position that overrides the stored one. */
  readonly from: string | undefined;
  readonly secret: string;
  readonly timeoutMs: number;
  /** Entries that are not forwarded, as `<topic>/<entryId>`. */
  readonly known?: ReadonlySet<string>;
  /** Called after each event that the local server has received. */
  readonly onForwarded?: (event: ListenedEvent, forwarded: Forwarded) => void;
  /** Ends the listener, in addition to the signal of the command. */
  readonly signal?: AbortSignal;
}

/** Number of recent events that are kept in memory, so that the user can send them again. */
const KEPT = 200;

/**
 * Sends an app's events to a local server, one at a time, until stopped. After each response, the position is stored, so that a
 * later run continues there.
 */
export async function listen({ api, output, io }: Client, options: ListenOptions): Promise<void> {
  const { app, url, channels, types, secret, timeoutMs } = options;
  const ending = new AbortController();
  const signal = AbortSignal.any([
    io.signal,
    ending.signal,
    ...(options.signal === undefined ? [] : [options.signal]),
  ]);
  const filters = [...channels.map((uid) => `channel ${uid}`), ...types.map((type) => `type ${type}`)].sort();
  using state = openListenState(io.env, { baseUrl: api.baseUrl, appId: app.id, target: url, filters });
  const from = options.from ?? state.position;
  output.note(headOf(options, from));

  const recent = new Map<number, ListenedEvent>();
  let count = 0;
  let waitsFor: string | undefined;
  /** Prints why an event is waiting. Prints each reason once instead of at every attempt. */
  const onWaiting = (what: string, reason: string): void => {
    const message = `${what}: ${reason}`;
    if (message !== waitsFor) output.note(message, "yellow");
    waitsFor = message;
  };
  const send = (event: ListenedEvent): Promise<Forwarded | undefined> =>
    forward(event, {
      url,
      secret,
      timeoutMs,
      signal,
      onWaiting: (reason) => onWaiting(`Waiting for ${url}`, reason),
    });

  async function again(number = count): Promise<void> {
    const event = recent.get(number);
    if (event === undefined) return output.note(`There is no event ${number} to send again.`);
    const forwarded = await send(event);
    if (forwarded !== undefined) show(number, event, forwarded, true);
  }

  function show(
    number: number,
    event: ListenedEvent,
    { status, latencyMs }: Forwarded,
    isAgain: boolean,
  ): void {
    const { id, type, topic } = event;
    const ms = Math.round(latencyMs);
    if (output.isJson) {
      const line = { number, id, type, channel: channelOf(topic), topic, entryId: event.entryId };
      output.json(JSON.stringify({ ...line, status: status ?? null, latencyMs: ms, again: isAgain }));
      return;
    }
    const color = status === undefined || status >= 500 ? "red" : status >= 300 ? "yellow" : "green";
    const answer = status === undefined ? `no response in ${ms} ms` : `${status} ${ms} ms`;
    output.say(
      [
        output.paint("dim", `${new Date().toTimeString().slice(0, 8)} #${number}`),
        `${escapeText(channelOf(topic))}:${output.paint("cyan", escapeText(type))}`,
        output.paint("dim", escapeText(id)),
        output.paint(color, answer) + (isAgain ? " again" : ""),
      ].join(" "),
    );
  }

  /** Returns an event with its exact data. An SSE stream changes line ends, so data that contains any is requested again by its id. */
  async function readExactly(json: string): Promise<ListenedEvent> {
    const event = readEntry(json);
    if (!event.hasLineEnds) return event;
    const path = formatPath("apps", app.id, "events", event.topic, event.entryId);
    return api.text(path).then(readEntry, () => event);
  }

  using _ = readKeys(io, {
    onAgain: (number) => void again(number),
    onEnd: () => ending.abort(new Error("ended by a key")),
  });
  const steps = followEvents(api, {
    env: io.env,
    appId: app.id,
    type: types.length === 1 ? types[0] : undefined,
    from,
    signal,
    onWaiting(reason) {
      if (reason !== undefined) onWaiting("Waiting for the gateway", reason);
      else if (waitsFor !== undefined) {
        waitsFor = undefined;
        output.note("Connected again.");
      }
    },
  });
  for await (const { position, event: json } of steps) {
    if (json !== undefined) {
      const event = await readExactly(json);
      if (isWanted(event, options)) {
        const forwarded = await send(event);
        if (forwarded === undefined) return;
        waitsFor = undefined;
        recent.set(++count, event);
        recent.delete(count - KEPT);
        state.save(position);
        // In JSON, the caller prints one object for the event instead.
        if (options.onForwarded === undefined || !output.isJson) show(count, event, forwarded, false);
        options.onForwarded?.(event, forwarded);
        continue;
      }
    }
    state.save(position);
  }
}

const isWanted = (
  { topic, type, entryId }: ListenedEvent,
  { channels, types, known }: Pick<ListenOptions, "channels" | "types" | "known">,
): boolean =>
  (channels.length === 0 || channels.includes(channelOf(topic))) &&
  (types.length === 0 || types.includes(type)) &&
  known?.has(`${topic}/${entryId}`) !== true;

function headOf({ app, url, channels, secret }: ListenOptions, from: string | undefined): string {
  const what = channels.length === 0 ? "all channels" : channels.join(", ");
  const sinceMs = from === undefined ? undefined : Number(from.split(".", 1)[0]);
  const since = sinceMs === undefined ? "starting now" : `starting at ${new Date(sinceMs).toISOString()}`;
  return [
    `Forwarding ${what} of ${app.uid} to ${url}, ${since}.`,
    `Signed as Standard Webhooks with ${secret}`,
    "Keys: r sends the last event again, 12r sends event 12 again, q quits.",
  ].join("\n");
}
