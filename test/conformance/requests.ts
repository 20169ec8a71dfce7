import type { Hono } from "hono";
import type { RequestEnv } from "../../src/http/context.ts";

/** A request to the management API, ready to be sent. */
export interface ApiRequest {
  readonly method: string;
  /** Below the version, with its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Undefined: none. A string goes out as it is, anything else as JSON. */
  readonly body?: unknown;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export type Send = (request: ApiRequest) => Promise<Answered>;

/** Sends to an app in this process. */
export const sendTo =
  (app: Hono<RequestEnv>): Send =>
  async ({ method, path, headers, body }) =>
    read(await app.request(`/v1${path}`, { method, ...contentOf(headers, body) }));

function contentOf(headers: ApiRequest["headers"], body: unknown) {
  if (body === undefined) return { headers: { ...headers } };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { headers: { "content-type": "application/json", ...headers }, body: text };
}

/** A stream of events is not read to its end, which may never come. */
async function read(response: Response): Promise<Answered> {
  const { status, headers } = response;
  if (headers.get("content-type")?.startsWith("text/event-stream")) {
    await response.body?.cancel();
    return { status, headers, text: "" };
  }
  return { status, headers, text: await response.text() };
}

/** What of an answer could tell one case from another; each request has an id, a time and a count of its own. */
export function visible({ status, headers, text }: Answered) {
  const own = /^(?:x-request-id|date|ratelimit-.*)$/;
  return { status, text, headers: Object.fromEntries([...headers].filter(([name]) => !own.test(name))) };
}
