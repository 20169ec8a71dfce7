import type { Hono } from "hono";
import type { RequestEnv } from "../../src/http/context.ts";

/** A request to the management API, ready to be sent. */
export interface ApiRequest {
  readonly method: string;
  /** The path relative to `/v1`, with its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body: `undefined` for none, a string to send unchanged, or a value to send as JSON. */
  readonly body?: unknown;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export type Send = (request: ApiRequest) => Promise<Answered>;

/** Sends requests to an app in this process. */
export const sendTo =
  (app: Hono<RequestEnv>): Send =>
  async ({ method, path, headers, body }) =>
    read(await app.request(`/v1${path}`, { method, ...contentOf(headers, body) }));

function contentOf(headers: ApiRequest["headers"], body: unknown) {
  if (body === undefined) return { headers: { ...headers } };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { headers: { "content-type": "application/json", ...headers }, body: text };
}

/** Does not read event streams, because they may never end. */
async function read(response: Response): Promise<Answered> {
  const { status, headers } = response;
  if (headers.get("content-type")?.startsWith("text/event-stream")) {
    await response.body?.cancel();
    return { status, headers, text: "" };
  }
  return { status, headers, text: await response.text() };
}

/** Returns the parts of a response that could reveal a difference. Ids, times and rate limit counts differ between all requests. */
export function visible({ status, headers, text }: Answered) {
  const own = /^(?:x-request-id|date|ratelimit-.*)$/;
  return { status, text, headers: Object.fromEntries([...headers].filter(([name]) => !own.test(name))) };
}
