import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import type { RawRequest } from "../../../src/event/received.ts";
import { createKeyCaches } from "../../../src/verify/keys/key-cache.ts";
import { type CompiledSender, compileSender } from "../../../src/verify/verify.ts";
import { parseSender } from "../../verify/support.ts";
import { listenLocally } from "../local-server.ts";
import { sharedPresets } from "../presets.ts";

export interface ReceivedRequest {
  readonly kind: "handshake" | "delivery" | "rejected";
  readonly request: RawRequest;
}

/** Receives the deliveries of one provider, and verifies them with the provider's preset. */
export interface Receiver extends AsyncDisposable {
  readonly address: string;
  readonly received: readonly ReceivedRequest[];
  /** Requests that are deliveries with a valid signature. */
  readonly deliveries: () => readonly RawRequest[];
  readonly setSecret: (secret: string | undefined) => void;
}

export async function startReceiver(options: {
  readonly preset: string;
  readonly clock: () => number;
  /** Settings that differ from those of the preset. */
  readonly config?: object | undefined;
  /** Returns the documents at the URLs from which the preset fetches keys. */
  readonly fetchKeys?: (url: string) => string;
}): Promise<Receiver> {
  const { preset, clock, config, fetchKeys = () => "" } = options;
  const received: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const raw: RawRequest = {
      method: request.method ?? "",
      target: request.url ?? "",
      headers: Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      ),
      body: await buffer(request),
      arrivedAtMs: clock(),
    };
    const { kind, headers, body } = await react(raw);
    received.push({ kind, request: raw });
    response.writeHead(kind === "rejected" ? 401 : 200, headers).end(body);
  });
  const local = await listenLocally(server);
  const compile = (secret: string | undefined): CompiledSender =>
    compileSender(
      parseSender(
        { preset, ...config, secrets: secret === undefined ? [] : [{ value: secret }] },
        sharedPresets(),
      ),
      {
        hooksUrl: local.origin,
        keys: createKeyCaches(async (url) => Buffer.from(fetchKeys(url)))("org_1"),
        onShadowed: () => {},
      },
    );
  let sender = compile(undefined);

  async function react(
    raw: RawRequest,
  ): Promise<Pick<ReceivedRequest, "kind"> & { headers?: Record<string, string>; body?: string | Buffer }> {
    const open = sender.findOpenHandshake?.(raw);
    const verified = open === undefined ? await sender.verify(raw) : undefined;
    if (verified?.ok === false) return { kind: "rejected" };
    const handshake = open ?? (verified && sender.findHandshake(raw, verified.value));
    if (handshake === undefined) return { kind: "delivery" };
    if (handshake.captured?.ok) sender = compile(handshake.captured.value);
    const reply = handshake.reply();
    if (!reply.ok) return { kind: "rejected" };
    const { contentType, headers, body } = reply.value;
    return { kind: "handshake", headers: { "content-type": contentType, ...headers }, body };
  }

  return {
    ...local,
    address: `${local.origin}/hooks/ch_1`,
    received,
    deliveries: () => received.filter(({ kind }) => kind === "delivery").map(({ request }) => request),
    setSecret(secret) {
      sender = compile(secret);
    },
  };
}
