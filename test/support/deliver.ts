import type { Outcome } from "../../src/event/outcome.ts";

export interface HookResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed JSON. `undefined` if the response has none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
  readonly body: any;
}

/**
 * Sends a request to a channel's address, as JSON unless `headers` say otherwise.
 *
 * @param body texts and bytes are sent unchanged, other values as JSON
 */
export async function post(
  address: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<HookResponse> {
  const response = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" || body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson ? JSON.parse(text) : undefined,
  };
}

/** Sends a delivery to a channel's address, which must accept it. Returns the outcome. */
export async function deliver(...request: Parameters<typeof post>): Promise<Outcome> {
  const { status, text, body } = await post(...request);
  if (status !== 200) throw new Error(`the delivery got ${status}: ${text}`);
  return body;
}
