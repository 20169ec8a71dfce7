import type { Env, Hono } from "hono";
import { ApiError, answerError, notFound, toApiError } from "./problem.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Makes every answer of the app that no route gives an error body: unknown paths, other methods, whatever is thrown. */
export function answerErrors<E extends Env>(app: Hono<E>): void {
  app.onError((thrown, c) => answerError(c, toApiError(thrown)));
  app.notFound((c) => {
    const allowed = allowedMethods(app, c.req.path);
    return answerError(c, allowed.length > 0 ? methodNotAllowed(allowed) : notFound("resource"));
  });
}

function methodNotAllowed(allowed: readonly string[]): ApiError {
  return new ApiError("method_not_allowed", "This address does not take that method.", {
    headers: { allow: allowed.join(", ") },
  });
}

/** The methods that have a route of their own at this path; middleware, which takes all, is none. */
function allowedMethods<E extends Env>(app: Hono<E>, path: string): readonly string[] {
  return METHODS.filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method),
  ).flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
}
