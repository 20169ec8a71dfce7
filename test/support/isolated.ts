import { expect } from "vitest";
import type { Answer, Call } from "./api.ts";

/** Differ between any two requests. */
const OWN_TO_EACH = ["x-request-id", "ratelimit-remaining", "ratelimit-reset"];

/** What of an answer could tell one case from another. */
export const visible = ({ status, headers, body }: Answer) => ({
  status,
  body,
  headers: Object.fromEntries([...headers].filter(([name]) => !OWN_TO_EACH.includes(name))),
});

/** An id of the same form that there is not. */
export const missing = (id: string): string => `${id.slice(0, -3)}000`;

/**
 * To that caller, an item of others at `path` is as one that there is not: seen, changed, deleted, or named malformed. `patch` may
 * go by the id in the path.
 */
export async function expectHidden(
  stranger: Call,
  path: string,
  id: string,
  patch: object | ((id: string) => object),
): Promise<void> {
  const patchOf = (named: string): object => (typeof patch === "function" ? patch(named) : patch);
  for (const method of ["GET", "PUT", "DELETE"]) {
    const bodyOf = (named: string) => (method === "PUT" ? patchOf(named) : undefined);
    const foreign = visible(await stranger(method, `${path}/${id}`, bodyOf(id)));
    expect(foreign.status).toBe(404);
    for (const other of [missing(id), "x", `${id}x`]) {
      expect(visible(await stranger(method, `${path}/${other}`, bodyOf(other)))).toEqual(foreign);
    }
  }
}

/** To that caller, a body with an id of others is as one with an id that there is not. */
export async function expectUnknownInside(
  stranger: Call,
  method: string,
  path: string,
  id: string,
  bodyWith: (id: string) => object,
): Promise<void> {
  const foreign = visible(await stranger(method, path, bodyWith(id)));
  expect(foreign.status).toBe(404);
  for (const other of [missing(id), "x"]) {
    expect(visible(await stranger(method, path, bodyWith(other)))).toEqual(foreign);
  }
}
