import { z } from "zod";

/** HTTP methods with which a channel can receive deliveries. */
export const DELIVERY_METHODS = ["POST", "PUT", "PATCH", "GET", "DELETE"] as const;

/** Methods that the setting `methods` of a channel can list. `HEAD` never delivers. */
export const HOOK_METHODS = [...DELIVERY_METHODS, "HEAD"] as const;
export type HookMethod = (typeof HOOK_METHODS)[number];

export const DEFAULT_METHODS: readonly HookMethod[] = ["POST"];

/** Returns whether a delivery with this method has its content in the query instead of the body. */
export const isQueryMethod = (method: string): boolean => method === "GET" || method === "DELETE";

export const methodsField = z
  .array(z.enum(HOOK_METHODS))
  .min(1)
  .max(HOOK_METHODS.length)
  .refine((methods) => new Set(methods).size === methods.length, "must name each method once")
  .refine(
    (methods) => methods.length === 0 || methods.some((method) => method !== "HEAD"),
    "must contain a method other than HEAD, because HEAD delivers nothing",
  )
  .describe(
    "HTTP methods that deliver events. With GET and DELETE, the item is an object of the query parameters, and the request must have no body. HEAD is answered with 200 and delivers nothing. Methods of handshakes are accepted in addition, and a request that matches a handshake is never a delivery. Any other method gets 405. Defaults to the preset's setting, or else to POST.",
  );
