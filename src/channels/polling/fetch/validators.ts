import { hash } from "node:crypto";
import { z } from "zod";
import type { OutboundRequest, OutboundResponse } from "../../../net/outbound.ts";

/** Response headers that a client sends back, so that the server can respond with 304 to save traffic (RFC 9110, section 8.8). */
export const validatorsSchema = z.strictObject({
  /** Hash of the request to which the server sent these headers. */
  of: z.string(),
  etag: z.string().optional(),
  lastModified: z.string().optional(),
});

export type Validators = z.output<typeof validatorsSchema>;

const MAX_CHARS = 1024;

/**
 * Adds `If-None-Match` and `If-Modified-Since`, but only if the stored values came from the same request (RFC 9110, sections 13.1.2 and
 * 13.1.3).
 */
export function withConditions(
  request: OutboundRequest,
  validators: Validators | undefined,
): OutboundRequest {
  if (validators === undefined || validators.of !== hashRequest(request)) return request;
  const { etag, lastModified } = validators;
  return {
    ...request,
    headers: {
      ...request.headers,
      ...(etag !== undefined && { "if-none-match": etag }),
      ...(lastModified !== undefined && { "if-modified-since": lastModified }),
    },
  };
}

export function readValidators(
  request: OutboundRequest,
  { headers }: OutboundResponse,
): Validators | undefined {
  const read = (name: string): string | undefined => {
    const [value] = [headers[name] ?? []].flat();
    return value !== undefined && value !== "" && value.length <= MAX_CHARS ? value : undefined;
  };
  const etag = read("etag");
  const lastModified = read("last-modified");
  if (etag === undefined && lastModified === undefined) return undefined;
  return { of: hashRequest(request), etag, lastModified };
}

/** Identifies a request. Credentials and conditional headers are excluded from the hash. */
const hashRequest = ({ body = "", headers, method, url }: OutboundRequest): string =>
  hash("sha256", JSON.stringify([method, url, headers, body.toString()]), "base64url").slice(0, 22);
