import type { HandshakeReply } from "../../event/ingest.ts";
import { parseJson } from "../../event/parse-json.ts";
import type { WrongField } from "../../lib/check-fields.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { compileTemplate, type Placeholder, type Template } from "../../lib/template.ts";
import { compileFilters } from "../message/filters.ts";
import { compileSource, type RequestView } from "../message/request-view.ts";
import { findSource, findWrongName } from "../message/source.ts";
import type { ReplyConfig } from "./config.ts";

export interface ReplySource {
  readonly view: RequestView;
  /** Returns the named secret, or `undefined` if the channel has no valid secret of that name. */
  readonly secret: (name: string) => string | undefined;
  /** Returns the HMAC key that verifies deliveries, or `undefined` if the channel has no valid secret. */
  readonly hmacKey: () => Buffer | undefined;
}

/** Renders the response to a handshake. The error names a value that is missing from the request. */
export type RenderReply = (source: ReplySource) => Result<HandshakeReply, string>;

interface Rendering extends ReplySource {
  lacking: string | undefined;
}

/** Maximum length in characters of a request value that the response repeats. The handshake fails if a value is longer. */
const MAX_ECHO_LENGTH = 4_096;
/**
 * Matches texts that a handshake may sign for any sender. Such a text can never be a delivery or the beginning of one, so the
 * signature cannot be misused.
 */
const SIGNABLE = /^[A-Za-z0-9_~+/-]{1,256}={0,2}$/;
const HEADER_VALUE = /^[\x20-\x7e]*$/;
/**
 * Matches headers that a handshake response must not set, because they redirect the client or change how it interprets the
 * response.
 */
const FORBIDDEN_HEADER =
  /^(?:content-.*|access-control-.*|set-cookie.*|location|refresh|connection|transfer-encoding|trailer|upgrade|keep-alive|date|x-content-type-options|x-request-id|alt-svc|clear-site-data|link|www-authenticate|strict-transport-security)$/i;

export function compileReply(config: ReplyConfig): Result<RenderReply, readonly WrongField[]> {
  const { status, contentType, headers, body } = config;
  const wrong: WrongField[] = [];
  const bodyIsJson = contentType === "application/json";
  const compile = (text: string, path: readonly PropertyKey[], isJson: boolean): Template<Rendering> => {
    const compiled = compileTemplate<Rendering>(text, (placeholder) => bind(placeholder, isJson));
    if (compiled.ok) return compiled.value;
    wrong.push({ path, message: compiled.error });
    return () => "";
  };
  const renderBody = compile(body, ["body"], bodyIsJson);
  if (status === 204 && body !== "")
    wrong.push({ path: ["body"], message: "must be empty when the status is 204" });
  if (bodyIsJson && !isJsonTemplate(body)) {
    wrong.push({
      path: ["body"],
      message: "must be valid JSON with every placeholder inside double quotes",
    });
  }
  const renderHeaders = Object.entries(headers).map(([name, text]) => {
    const path = ["headers", name];
    const message = FORBIDDEN_HEADER.test(name)
      ? "must not be set by a handshake"
      : findWrongName("header", name);
    if (message !== undefined) wrong.push({ path, message });
    return [name.toLowerCase(), compile(text, path, false)] as const;
  });
  if (wrong.length > 0) return err(wrong);
  return ok((source) => {
    const rendering: Rendering = { ...source, lacking: undefined };
    const rendered = renderBody(rendering);
    const headers: Record<string, string> = {};
    for (const [name, render] of renderHeaders) {
      const value = render(rendering);
      if (!HEADER_VALUE.test(value))
        return err(`the value of ${name} contains characters that are not allowed in a header`);
      headers[name] = value;
    }
    if (rendering.lacking !== undefined) return err(rendering.lacking);
    return ok({ status, contentType, headers, body: rendered });
  });
}

function bind(
  { name, filters }: Placeholder,
  isJson: boolean,
): Result<(context: Rendering) => string, string> {
  const isOptional = filters[0] === "optional";
  const rest = isOptional ? filters.slice(1) : filters;
  const filter = compileFilters(rest, { hmac: true });
  if (!filter.ok) return filter;
  const read = findReader(name);
  if (!read.ok) return read;
  const signs = rest.some((each) => each.startsWith("hmac-"));
  return ok((context) => {
    const value = read.value(context);
    if (value === undefined || value.length > MAX_ECHO_LENGTH) {
      if (!isOptional) context.lacking ??= `${name} is missing, repeated or too long`;
      return "";
    }
    const hmacKey = signs ? context.hmacKey() : undefined;
    if (signs && hmacKey === undefined)
      context.lacking ??= "the channel has no secret to sign the response with";
    if (signs && !SIGNABLE.test(value))
      context.lacking ??= `${name} contains characters that must not be part of a signed handshake reply`;
    if (context.lacking !== undefined) return "";
    const text = filter.value(value, hmacKey);
    return isJson ? JSON.stringify(text).slice(1, -1) : text;
  });
}

function findReader(name: string): Result<(source: ReplySource) => string | undefined, string> {
  const colon = name.indexOf(":");
  const where = name.slice(0, Math.max(colon, 0));
  const rest = name.slice(colon + 1);
  if (where === "secret") return ok(({ secret }) => secret(rest));
  const source = where === "item" ? err("is not a known placeholder") : findSource(where, rest);
  if (!source.ok) return source;
  const read = compileSource(source.value);
  return ok(({ view }) => read(view));
}

/**
 * Returns whether a template is valid JSON with all placeholders inside quotes. A value that is inserted outside quotes could break
 * the JSON.
 */
function isJsonTemplate(text: string): boolean {
  try {
    parseJson(text.replace(/\{\{[^{}]*\}\}/g, 'a\\"b'));
    return true;
  } catch {
    return false;
  }
}
