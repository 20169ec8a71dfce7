import createClient from "openapi-fetch";
import { ApiError, parseApiError } from "./api-error.ts";
import { API_BASE } from "./base.ts";

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

/**
 * Typed client of the management API: `api.GET("/apps/{appId}", { params: { path: { appId } } })`. Throws an `ApiError`
 * for each error response.
 */
export const api = createClient<InletApi.paths>({
  baseUrl: API_BASE,
  credentials: "omit",
  cache: "no-store",
});

api.use({
  async onRequest({ request }) {
    if (request.headers.has("authorization")) return request;
    const token = await signer?.token();
    if (token !== undefined) request.headers.set("authorization", `Bearer ${token}`);
    return request;
  },
  async onResponse({ request, response }) {
    if (response.ok) return undefined;
    const error = await parseApiError(response);
    if (response.status === 401 && request.headers.has("authorization")) signer?.onRejected(error.message);
    throw error;
  },
  onError({ error }) {
    if (error instanceof ApiError || (error instanceof DOMException && error.name === "AbortError"))
      return undefined;
    return ApiError.unreachable(error);
  },
});

interface ApiResult<T> {
  readonly data?: T;
  readonly response: Response;
}

/** Returns the body of a successful response: `const app = await unwrap(api.GET(…))`. */
export async function unwrap<T>(request: Promise<ApiResult<T>>): Promise<T> {
  const { data, response } = await request;
  if (data === undefined) throw await parseApiError(response);
  return data;
}

export interface ListPage<T> {
  readonly rows: readonly T[];
  readonly total: number;
}

/** Returns the rows of a list response, with the total number of rows from the `X-Total-Count` header. */
export async function unwrapList<T>(request: Promise<ApiResult<readonly T[]>>): Promise<ListPage<T>> {
  const { data, response } = await request;
  if (data === undefined) throw await parseApiError(response);
  return { rows: data, total: Number(response.headers.get("x-total-count") ?? data.length) };
}

interface SendOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
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
  const token = await signer?.token();
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
  if (response.status === 401) signer?.onRejected(error.message);
  throw error;
}
