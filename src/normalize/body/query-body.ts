import type { BodyReading } from "../../event/body-reading.ts";
import { isCharset, mergeContentTypes, readCharset } from "../../event/content-type.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { findUndecoded, redecodeQuery } from "../../lib/urlencoded.ts";
import { type Fault, invalidBody } from "../fault.ts";
import { type Body, extractForm, readBody } from "./bodies.ts";
import { CHARSET_HINT } from "./form-charset.ts";

const FORM_TYPE = "application/x-www-form-urlencoded";

/**
 * Reads the query of a GET or DELETE delivery as if it were the form in the body of a POST. Parameters that verification consumes are not
 * part of it.
 *
 * A body is an error instead of being ignored, because a signature over the query does not protect it.
 */
export function readQueryBody(
  { method, query, body }: VerifiedDelivery,
  { forms }: BodyReading,
): Result<Body, Fault> {
  if (body.length > 0)
    return err(invalidBody(`a ${method} delivery must have no body, because its content is the query`));
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().map((each): [string, string] => [name, each]),
  );
  const text = new URLSearchParams(pairs).toString();
  if (text === "") return readBody(body, FORM_TYPE);
  const bytes = Buffer.from(text);
  return extractForm(
    { kind: "form", bytes, text, isVerbatim: true, value: query, json: undefined, contentType: FORM_TYPE },
    forms,
  );
}

/** Decodes a query that is not in UTF-8, or for which the channel has another encoding. */
export function decodeQuery(
  delivery: VerifiedDelivery,
  { formCharset }: BodyReading,
): Result<VerifiedDelivery, Fault> {
  const { query } = delivery;
  const name = findUndecoded(query);
  const set = typeof formCharset === "string" ? formCharset : undefined;
  if (name === undefined && set === undefined) return ok(delivery);
  const charset = set ?? readCharset(mergeContentTypes(delivery.headers["content-type"]) ?? "");
  if (charset === undefined || !isCharset(charset)) {
    const parameter = JSON.stringify(name?.toWellFormed());
    return err(invalidBody(`the query parameter ${parameter} is not valid UTF-8; ${CHARSET_HINT}`));
  }
  const decoded = redecodeQuery(query, charset);
  return decoded.ok ? ok({ ...delivery, query: decoded.value }) : err(invalidBody(decoded.error));
}
