import createClient from "openapi-fetch";
import { API_BASE } from "./base.ts";
import { ApiProblem, problemOf } from "./problem.ts";

/** The entities of the API, by their names in its document. */
export type Schemas = InletApi.components["schemas"];

/** Who signs requests; set once, by the session. */
export interface Signer {
  /** The bearer token; renewed where it is about to end. Undefined: nobody is signed in. */
  readonly token: () => Promise<string | undefined>;
  /** The API does not know that token any more. */
  readonly refused: (message: string) => void;
}

let signer: Signer | undefined;
export function signWith(given: Signer): void {
  signer = given;
}

/**
 * The management API, typed by its own document: `api.GET("/apps/{appId}", { params: { path: { appId } } })`. Whatever is not a
 * success is thrown as an `ApiProblem`.
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
    const problem = await problemOf(response);
    if (response.status === 401 && request.headers.has("authorization")) signer?.refused(problem.message);
    throw problem;
  },
  onError({ error }) {
    if (error instanceof ApiProblem || (error instanceof DOMException && error.name === "AbortError"))
      return undefined;
    return ApiProblem.unreachable(error);
  },
});

interface Answered<T> {
  readonly data?: T;
  readonly response: Response;
}

/** The body of a success: `const app = await got(api.GET(…))`. */
export async function got<T>(asked: Promise<Answered<T>>): Promise<T> {
  const { data, response } = await asked;
  if (data === undefined) throw await problemOf(response);
  return data;
}

/** A part of a list, and how many there are in all. */
export interface Part<T> {
  readonly rows: readonly T[];
  readonly total: number;
}

/** The same for a list, which says in a header how long it is. */
export async function gotList<T>(asked: Promise<Answered<readonly T[]>>): Promise<Part<T>> {
  const { data, response } = await asked;
  if (data === undefined) throw await problemOf(response);
  return { rows: data, total: Number(response.headers.get("x-total-count") ?? data.length) };
}

interface SendOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** A request by its method and path alone, for what is drawn from the document at run time: forms of resources. */
export async function send<T>(method: string, path: string, options: SendOptions = {}): Promise<T> {
  return (await sendFor(method, path, options)).json();
}

/** The same, for who needs the headers of the answer. @throws ApiProblem */
export async function sendFor(method: string, path: string, options: SendOptions = {}): Promise<Response> {
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
    throw ApiProblem.unreachable(error);
  });
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (response.status === 401) signer?.refused(problem.message);
  throw problem;
}
