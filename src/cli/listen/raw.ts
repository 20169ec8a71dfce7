import { FRAMING_HEADERS } from "../../lib/framing-headers.ts";
import { sleep } from "../../lib/sleep.ts";
import type { Delivery, WholeDelivery } from "../../resources/events/deliveries/schema.ts";
import { ApiError, formatCause, formatPath, parseErrorResponse } from "../client/api.ts";
import type { Client } from "../client/command.ts";
import type { App } from "../client/entities.ts";
import { CommandError, EXIT } from "../exit.ts";
import { escapeText } from "../output/escape.ts";
import { awakeTimeout } from "./awake-timeout.ts";

export interface RawOptions {
  readonly app: App;
  readonly url: string;
  /** Uids of the channels whose deliveries are forwarded. Empty for all channels. */
  readonly channels: readonly string[];
  readonly timeoutMs: number;
}

const POLL_INTERVAL_MS = 1_000;
const NEWEST = 200;
/** Headers that concern only the sender's connection to the gateway. The connection to the local server needs its own values. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(["accept-encoding", ...FRAMING_HEADERS]);

const HEAD = `Raw mode forwards sampled new deliveries with their original method, headers and body.
It sends at most one per second and channel, up to 128 KiB. Signatures are removed, so your server cannot verify them.
Deliveries missed in between are not sent later. Without --raw, every event is forwarded.`;

/** Forwards sampled raw deliveries to a local server until stopped. Reports and skips deliveries that cannot be sent. */
export async function listenRaw({ api, output, io }: Client, options: RawOptions): Promise<void> {
  const { app, url, channels, timeoutMs } = options;
  const { signal } = io;
  output.note(`Forwarding deliveries of ${app.uid} to ${url}.\n${HEAD}`);
  const path = formatPath("apps", app.id, "deliveries");
  const seen = new Set<string>();
  /**
   * Use only the `Date` header of this response: the start time on the gateway's clock. Older deliveries, whose records may appear
   * later, are then skipped.
   */
  const beginning = await api.open(path, { query: { limit: 1 } });
  if (!beginning.ok) throw await parseErrorResponse(beginning, api.baseUrl);
  const sinceMs = Date.parse(beginning.headers.get("date") ?? "") || Date.now();
  await beginning.body?.cancel();

  async function look(): Promise<void> {
    const { items } = await api.list<Delivery>(path, { order: "newest" }, NEWEST);
    const isNew = ({ id, receivedAt }: Delivery): boolean =>
      !seen.has(id) && Date.parse(receivedAt) >= sinceMs;
    const unseen = items.filter((one) => isNew(one) && isWanted(one.channelUid, channels)).reverse();
    for (const { id } of items) seen.add(id);
    for (const id of [...seen].slice(0, Math.max(0, seen.size - 10 * NEWEST))) seen.delete(id);
    for (const { id } of unseen) {
      const whole = await api.get<WholeDelivery>(`${path}${formatPath(id)}`).catch(unlessGone);
      if (whole !== undefined) await sendOn(whole);
    }
  }

  async function sendOn(delivery: WholeDelivery): Promise<void> {
    const { method, status, channelUid, id, bodyBase64 } = delivery;
    const about = { id, channel: channelUid, method, status };
    if (bodyBase64 === null) return show(about, undefined, `not sent: ${status}, its body is not stored`);
    const startedAt = performance.now();
    using late = awakeTimeout(timeoutMs);
    try {
      const response = await fetch(withQuery(url, delivery.query), {
        method,
        headers: headersOf(delivery.headers),
        ...(method === "GET" || method === "HEAD" ? {} : { body: Buffer.from(bodyBase64, "base64") }),
        redirect: "manual",
        signal: AbortSignal.any([signal, late.signal]),
      });
      await response.arrayBuffer();
      show(about, response.status, `${response.status} ${Math.round(performance.now() - startedAt)} ms`);
    } catch (error) {
      if (signal.aborted) return;
      show(about, undefined, `not delivered: ${formatCause(error)}`);
    }
  }

  function show(about: Readonly<Record<string, string>>, status: number | undefined, end: string): void {
    if (output.isJson) {
      output.json(JSON.stringify({ ...about, answer: status ?? null, end }));
      return;
    }
    const { channel = "", method = "", id = "" } = about;
    const color = status === undefined || status >= 300 ? "yellow" : "green";
    output.say(
      `${escapeText(method)} ${escapeText(channel)} ${output.paint("dim", id)} ${output.paint(color, escapeText(end))}`,
    );
  }

  let waitsFor = "";
  while (!signal.aborted) {
    try {
      await look();
      waitsFor = "";
    } catch (error) {
      if (signal.aborted) return;
      if (!isPassing(error)) throw error;
      if (error.message !== waitsFor) output.note(`Waiting for the gateway: ${error.message}`, "yellow");
      waitsFor = error.message;
    }
    await sleep(POLL_INTERVAL_MS, signal);
  }
}

const isWanted = (uid: string, channels: readonly string[]): boolean =>
  channels.length === 0 || channels.includes(uid);

/** Ignores status 404, because a newer record of the same channel has replaced the requested record. Rethrows other errors. */
function unlessGone(error: unknown): undefined {
  if (!(error instanceof ApiError) || error.status !== 404) throw error;
}

/** Returns whether an error is temporary. */
const isPassing = (error: unknown): error is CommandError =>
  error instanceof CommandError &&
  (error.exitCode === EXIT.unavailable || (error instanceof ApiError && error.status >= 500));

function headersOf(headers: WholeDelivery["headers"]): Headers {
  const sent = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (CONNECTION_HEADERS.has(name)) continue;
    for (const one of typeof value === "string" ? [value] : value) sent.append(name, one);
  }
  return sent;
}

function withQuery(url: string, query: WholeDelivery["query"]): URL {
  const target = new URL(url);
  for (const [name, value] of Object.entries(query)) {
    for (const one of typeof value === "string" ? [value] : value) target.searchParams.append(name, one);
  }
  return target;
}
