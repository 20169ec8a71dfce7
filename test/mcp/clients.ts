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

/** A response of the MCP endpoint, with its JSON-RPC messages. */
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

/**
 * Sends a request of protocol version 2026-07-28 without a client library, with all headers and `_meta` fields that this version requires.
 * The response of `events/stream` is read up to its first notification.
 */
export async function sendRequest(
  { origin }: { readonly origin: string },
  request: McpRequest,
): Promise<McpResponse> {
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
  const message = { jsonrpc: "2.0", id, method, params: { ...params, _meta: META } };
  const ending = new AbortController();
  const response = await fetch(`${origin}/mcp`, {
    method: "POST",
    headers: Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
    body: request.body ?? JSON.stringify(message),
    signal: ending.signal,
  });
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (method === "events/stream" && text.includes("\n\n")) break;
  }
  ending.abort();
  const json = /^data: (\{.*)$/m.exec(text)?.[1] ?? text;
  return {
    status: response.status,
    headers: response.headers,
    text,
    message: json.startsWith("{") ? JSON.parse(json) : undefined,
  };
}

export const VERSION = "2026-07-28";

const META = {
  "io.modelcontextprotocol/protocolVersion": VERSION,
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
