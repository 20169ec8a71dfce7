import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { API_KEY } from "../support/gateway-process.ts";

/** Generations of the protocol: `legacy` starts with `initialize`, `modern` sends every request on its own (2026-07-28). */
export const GENERATIONS = ["legacy", "modern"] as const;
export type Generation = (typeof GENERATIONS)[number];

/** Connects the official client to the MCP server of a gateway. */
export async function connectAgent(
  { origin }: { readonly origin: string },
  {
    token = API_KEY,
    generation = "modern",
  }: { readonly token?: string; readonly generation?: Generation } = {},
): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode: generation === "modern" ? { pin: "2026-07-28" } : "legacy" } },
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL("/mcp", origin), {
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    }),
  );
  return client;
}

/** A response of the MCP endpoint, with its JSON-RPC message. */
export interface McpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read messages of every shape
  readonly message: any;
}

export interface McpRequest {
  readonly method: string;
  readonly params?: object;
  readonly id?: string | number;
  /** `undefined` sends no token. */
  readonly token?: string | undefined;
  /** Replaces headers. `undefined` omits one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Replaces the JSON-RPC message. */
  readonly body?: string;
}

export const VERSION = "2026-07-28";

const META = {
  "io.modelcontextprotocol/protocolVersion": VERSION,
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** Sends a request of protocol version 2026-07-28 without a client library, with all headers and `_meta` fields that it requires. */
function open(origin: string, request: McpRequest, signal: AbortSignal | null = null): Promise<Response> {
  const { method, params = {}, id = 1, headers = {} } = request;
  const { name } = params as { readonly name?: string };
  const token = "token" in request ? request.token : API_KEY;
  const all = {
    authorization: token === undefined ? undefined : `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": VERSION,
    "mcp-method": method,
    "mcp-name": method === "tools/call" ? name : undefined,
    ...headers,
  };
  return fetch(`${origin}/mcp`, {
    method: "POST",
    headers: Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
    body: request.body ?? JSON.stringify({ jsonrpc: "2.0", id, method, params: { _meta: META, ...params } }),
    signal,
  });
}

/** Sends a request and reads its response. The response of `events/stream` is read up to its first notification. */
export async function sendRequest(
  { origin }: { readonly origin: string },
  request: McpRequest,
): Promise<McpResponse> {
  const ending = new AbortController();
  const response = await open(origin, request, ending.signal);
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (request.method === "events/stream" && text.includes("\n\n")) break;
  }
  ending.abort();
  const { status, headers } = response;
  const json = DATA.exec(text)?.[1] ?? text;
  return { status, headers, text, message: json.startsWith("{") ? JSON.parse(json) : undefined };
}

const DATA = /^data: (.+)$/m;

/** A notification of an event stream, or its final result. */
export interface StreamMessage {
  readonly method?: string;
  readonly id?: string | number;
  readonly result?: object;
  // biome-ignore lint/suspicious/noExplicitAny: tests read notifications of every shape
  readonly params: any;
}

/** Opens a stream (`events/stream`), and collects its messages. */
export async function openStream(
  { origin }: { readonly origin: string },
  params: object,
  options: Pick<McpRequest, "token" | "id"> = {},
) {
  const ending = new AbortController();
  const { body, headers } = await open(
    origin,
    { method: "events/stream", params, ...options },
    ending.signal,
  );
  const messages: StreamMessage[] = [];
  let isOpen = true;
  async function read(): Promise<void> {
    let text = "";
    for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const frames = (text + chunk).split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const data = DATA.exec(frame)?.[1];
        if (data !== undefined) messages.push(JSON.parse(data));
      }
    }
  }
  void read()
    .catch(() => {})
    .finally(() => {
      isOpen = false;
    });
  const ofKind = (kind: string) => messages.filter(({ method }) => method === `notifications/events/${kind}`);
  return {
    headers,
    messages,
    ofKind,
    numbers: () => ofKind("event").map(({ params: { data } }): number => data.n),
    isOpen: () => isOpen,
    close: () => ending.abort(),
  };
}
