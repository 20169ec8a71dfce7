import type { MiddlewareHandler } from "hono";
import type { ApiEnv, Caller } from "./context.ts";
import { ApiError } from "./problem.ts";

const ALL = "*";

/** Lets pass who holds the permission that the resource at this path asks for. @throws ApiError 403 that names it. */
export function authorize(resourcePath: string): MiddlewareHandler<ApiEnv> {
  const noun = nounOf(resourcePath);
  return async (c, next) => {
    requirePermission(c.get("caller"), `${noun}.${reads(c.req.method, c.req.path) ? "read" : "write"}`);
    await next();
  };
}

/** @throws ApiError 403 that names the permission. */
export function requirePermission(caller: Caller, permission: string): void {
  if (caller.permissions.has(ALL) || caller.permissions.has(permission)) return;
  throw new ApiError("permission_denied", `This needs the permission ${permission}.`);
}

/** `/knowledge-bases/:id` → `knowledgeBases`. */
function nounOf(path: string): string {
  const [, noun = ""] = path.split("/");
  return noun.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** `POST …/list` is a read that takes its page in the body. */
const reads = (method: string, path: string): boolean =>
  method === "GET" || method === "HEAD" || (method === "POST" && path.endsWith("/list"));
