import type { MiddlewareHandler } from "hono";
import { invalidParameters, notFound } from "./problem.ts";

const NUL = "\0";

/**
 * No database and no bus can keep or look for U+0000: a path with it names nothing, a query with it does not fit. Bodies are
 * looked through where they are read.
 *
 * @throws ApiError 404, 400
 */
export function refuseUnfitText(): MiddlewareHandler {
  return async (c, next) => {
    const unfit = Object.entries(c.req.query()).filter(([name, value]) => `${name}${value}`.includes(NUL));
    if (unfit.length > 0) {
      throw invalidParameters(
        unfit.map(([name]) => ({ path: name.replaceAll(NUL, ""), message: "must not contain U+0000" })),
      );
    }
    if (/%00/.test(c.req.path) || c.req.path.includes(NUL)) throw notFound("resource");
    await next();
  };
}
