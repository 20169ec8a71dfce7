import type { Context } from "hono";
import { parseJson } from "../event/parse-json.ts";
import type { Finding } from "../lib/errors.ts";
import { formatPath } from "../lib/findings.ts";
import { ApiError, invalidParameters } from "./errors.ts";

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_DEPTH = 256;

/**
 * Parses the JSON body of an API request. Returns `undefined` if the body is empty.
 *
 * @throws ApiError 413 above 1 MiB, 415 for another content type, 400 for invalid JSON or text that cannot be stored (NUL, lone surrogates)
 */
export async function readJson(c: Context): Promise<unknown> {
  const bytes = await readBytes(c.req.raw);
  if (bytes.length === 0) return undefined;
  if (!isJson(c.req.header("content-type"))) {
    throw new ApiError(
      "unsupported_media_type",
      "The body must be JSON, with Content-Type application/json.",
    );
  }
  const value = parse(bytes);
  requireFitText(value);
  return value;
}

/**
 * Checks that PostgreSQL and Redis can store all strings in a value, at any depth.
 *
 * @throws ApiError 400 if a string cannot be stored in the database or on the bus
 */
export function requireFitText(value: unknown): void {
  const findings: Finding[] = [];
  findUnfitText(value, [], findings);
  if (findings.length > 0) throw invalidParameters(findings);
}

async function readBytes(request: Request): Promise<Buffer> {
  if (Number(request.headers.get("content-length") ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  if (!request.body) return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

const tooLarge = (): ApiError => new ApiError("payload_too_large", "The body is larger than 1 MiB.");

function isJson(contentType: string | undefined): boolean {
  return /^application\/(?:[a-z0-9.-]+\+)?json\s*(?:;|$)/i.test(contentType ?? "");
}

function parse(bytes: Buffer): unknown {
  try {
    return parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new ApiError("invalid_parameters", "The body is not valid JSON.", { cause: error });
  }
}

function findUnfitText(value: unknown, path: readonly PropertyKey[], findings: Finding[]): void {
  if (path.length > MAX_DEPTH) throw invalidParameters([], `The body is nested deeper than ${MAX_DEPTH}.`);
  if (typeof value === "string") {
    if (isUnfit(value)) findings.push({ path: formatPath(path), message: UNFIT });
  } else if (Array.isArray(value)) {
    value.forEach((item, index) => {
      findUnfitText(item, [...path, index], findings);
    });
  } else if (typeof value === "object" && value !== null) {
    for (const [name, item] of Object.entries(value)) {
      if (isUnfit(name)) findings.push({ path: formatPath(path), message: `a name ${UNFIT}` });
      else findUnfitText(item, [...path, name], findings);
    }
  }
}

const UNFIT = "must not contain U+0000 or lone surrogates";
const isUnfit = (text: string): boolean => text.includes("\0") || !text.isWellFormed();
