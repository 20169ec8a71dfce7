import { ApiError, parseApiError } from "./api-error.ts";
import { API_BASE } from "./base.ts";
import { fillPath, formatQuery } from "./curl.ts";
import type { ListPage } from "./list-page.ts";

/** Types of the API's schemas, keyed by their name in the OpenAPI document. */
export type Schemas = InletApi.components["schemas"];

/** Provides the bearer token for API requests. The session module sets it when that module is loaded. */
export interface Signer {
  /** Returns the bearer token, or `undefined` if the user is signed out. A token that expires soon is renewed first. */
  readonly token: () => Promise<string | undefined>;
  /** Called when the API rejects the token with 401. */
  readonly onRejected: (message: string) => void;
}

let signer: Signer | undefined;
export function setSigner(given: Signer): void {
  signer = given;
}

export type { ListPage } from "./list-page.ts";

interface SendOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Sends a request whose path is only known at run time, such as the request of a generated form. Returns the JSON body. */
export async function send<T>(method: string, path: string, options: SendOptions = {}): Promise<T> {
  return (await sendForResponse(method, path, options)).json();
}

/** Like `send`, but returns the response including its headers. @throws ApiError */
export async function sendForResponse(
  method: string,
  path: string,
  options: SendOptions = {},
): Promise<Response> {
  const { body, headers, signal } = options;
  // The session's own requests bring their token, and must not wait for another one.
  const token = headers?.authorization === undefined ? await signer?.token() : undefined;
  const response = await fetch(`${API_BASE}${path}`, {
    method,
    credentials: "omit",
    cache: "no-store",
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw ApiError.unreachable(error);
  });
  if (response.ok) return response;
  const error = await parseApiError(response);
  // A call with its own credential, such as a sign-in, says nothing about the session.
  if (response.status === 401 && headers?.authorization === undefined) signer?.onRejected(error.message);
  throw error;
}

/** Sends a request for a list. The total number of rows and the cursor of the next page are in headers. @throws ApiError */
export async function sendForList<T>(path: string, options: SendOptions): Promise<ListPage<T>> {
  const response = await sendForResponse("GET", path, options);
  const rows = (await response.json()) as readonly T[];
  const { headers } = response;
  const scanned = headers.get("x-scanned-count");
  return {
    rows,
    total: Number(headers.get("x-total-count") ?? rows.length),
    next: headers.get("x-next-cursor") ?? undefined,
    ...(scanned !== null && { scanned: Number(scanned) }),
  };
}

/** Loads an entity with its `ETag`, which a later change sends back to detect changes in between. @throws ApiError */
export async function loadVersioned<T>(
  path: string,
  signal: AbortSignal,
): Promise<{ readonly entity: T; readonly etag: string | undefined }> {
  const response = await sendForResponse("GET", path, { signal });
  return { entity: (await response.json()) as T, etag: response.headers.get("etag") ?? undefined };
}

type Paths = InletApi.paths;
/** Operations of the API with this method, keyed by path. */
type Operations<Method extends string> = {
  [P in keyof Paths as Paths[P] extends Record<Method, object> ? P : never]: Paths[P] extends Record<
    Method,
    infer Operation
  >
    ? Operation
    : never;
};
/** Parameters of an operation, and options of its request. */
export type Parameters<Operation> = Operation extends { parameters: infer P }
  ? Pick<P, keyof P & ("path" | "query")> & Omit<SendOptions, "body">
  : never;
/** Body of the request of an operation. */
type Body<Operation> = Operation extends { requestBody?: infer B }
  ? NonNullable<B> extends { content: { "application/json": infer Content } }
    ? { readonly body: Content }
    : never
  : never;
/** Body of a successful response. */
export type Answer<Operation> = Operation extends {
  responses: { 200: { content: { "application/json": infer A } } };
}
  ? A
  : never;
export type Row<Operation> = Answer<Operation> extends readonly (infer R)[] ? R : never;
export type Gets = Operations<"get">;
type Posts = Operations<"post">;

/** Typed client of the management API: `api.get("/apps/{appId}", { path: { appId } })`. Its methods throw `ApiError`. */
export const api = {
  get: <P extends keyof Gets>(path: P, request: Parameters<Gets[P]>): Promise<Answer<Gets[P]>> =>
    send("GET", urlOf(path, request), request),
  list: <P extends keyof Gets>(path: P, request: Parameters<Gets[P]>): Promise<ListPage<Row<Gets[P]>>> =>
    sendForList(urlOf(path, request), request),
  post: <P extends keyof Posts>(
    path: P,
    request: Parameters<Posts[P]> & Body<Posts[P]>,
  ): Promise<Answer<Posts[P]>> => send("POST", urlOf(path, request), request),
};

function urlOf(
  path: string,
  request: {
    readonly path?: Readonly<Record<string, string>>;
    readonly query?: Readonly<Record<string, string | number | undefined>>;
  },
): string {
  return fillPath(path, request.path ?? {}) + formatQuery(request.query ?? {});
}
