import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { listenLocally } from "../support/local-server.ts";

/** A request to the callback URL of an agent. */
export interface Message {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Decides the response to a message. Returns `undefined` for the usual one. */
type Reaction = { readonly status: number; readonly body?: string } | undefined;
type React = (message: Message) => Reaction | Promise<Reaction>;

/** Receives the messages of agents' subscriptions, and answers challenges. `react` changes the responses of a path. */
export interface CallbackServer extends AsyncDisposable {
  readonly origin: string;
  readonly urlOf: (path: string) => string;
  readonly react: Map<string, React>;
  /** All messages at this path. */
  readonly at: (path: string) => readonly Message[];
  /** The events that arrived at this path, and were accepted. */
  readonly events: (path: string) => readonly Message[];
}

export async function startCallbackServer(): Promise<CallbackServer> {
  const messages: Message[] = [];
  const accepted = new Set<Message>();
  const react = new Map<string, React>();
  const server = createServer(async (request, response) => {
    const text = String(await buffer(request).catch(() => ""));
    const headers = Object.fromEntries(Object.entries(request.headers).map(([k, v]) => [k, String(v)]));
    const message = { path: request.url ?? "", headers, text, body: JSON.parse(text || "{}") };
    messages.push(message);
    const { challenge } = message.body;
    const usual = { status: 200, body: challenge === undefined ? "" : JSON.stringify({ challenge }) };
    const { status, body = "" } = (await react.get(message.path)?.(message)) ?? usual;
    if (status < 300) accepted.add(message);
    response.writeHead(status).end(body);
  });
  const local = await listenLocally(server);
  const at = (path: string) => messages.filter((one) => one.path === path);
  return {
    ...local,
    react,
    at,
    urlOf: (path) => `${local.origin}${path}`,
    events: (path) => at(path).filter((one) => "eventId" in one.body && accepted.has(one)),
  };
}

/** Returns whether one of the signatures of a message was made with this secret (Standard Webhooks). */
export function isSignedWith(secret: string, { headers, text }: Message): boolean {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${text}`;
  const signature = `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
  return (headers["webhook-signature"] ?? "").split(" ").includes(signature);
}
