import { err, ok, type Result } from "../../lib/result.ts";
import { compileTemplate, type Placeholder } from "../../lib/template.ts";
import type { SignedMessageConfig } from "./config.ts";
import { compileFilters, takesBytes } from "./filters.ts";
import { compileParameters, compileSignedHeaders, type ParameterConfig } from "./parameters.ts";
import { compileSource, type ReadText, type RequestView } from "./request-view.ts";
import { findSource, type MessageSource } from "./source.ts";

type SigningParts = Pick<
  SignedMessageConfig,
  "template" | "timestamp" | "deliveryId" | "parameters" | "signedHeaders"
>;

/** Renders the signed text as consecutive pieces. The error names a value that is missing from the request. */
type SigningString = (view: RequestView, use: SigningUse) => Result<readonly (string | Buffer)[], string>;

interface SigningUse {
  /** Secret to verify with. Empty if the template of the signed text does not contain the secret. */
  readonly secret: string;
  readonly baseUrl: string;
}

/** Names of the request values that a template reads, such as `body`, `header:x-id` or `item:t`. */
export type Reads = ReadonlySet<string>;

interface CompiledSigning {
  readonly render: SigningString;
  readonly reads: Reads;
}

/**
 * Marks templates that read the body only through a checksum. An attacker can construct a different body with the same checksum.
 */
export const WEAK_BODY = "weak body";

interface Rendering extends SigningUse {
  readonly view: RequestView;
  missing: string | undefined;
}

/** Matches the placeholder of the raw body, which is hashed as bytes instead of being converted to text. */
const RAW_BODY = /\{\{\s*body\s*\}\}/;
const BODY_ONLY: Reads = new Set(["body"]);
/** Maximum number of times that a template may contain the body, because each occurrence adds a pass over all bytes. */
const MAX_BODIES = 2;
const MAX_PLACEHOLDERS = 32;

/** Compiles the template of the signed text. Without a template, the signed text is the raw body. */
export function compileSigningString(parts: SigningParts): Result<CompiledSigning, string> {
  const { template } = parts;
  if (template === undefined) return ok({ render: ({ request }) => ok([request.body]), reads: BODY_ONLY });
  const reads = new Set<string>();
  const texts = template.split(RAW_BODY);
  if ((template.match(/\{\{\s*body\s*[|}]/g) ?? []).length > MAX_BODIES) {
    return err(`must contain {{body}} at most ${MAX_BODIES} times`);
  }
  if (template.split("{{").length - 1 > MAX_PLACEHOLDERS) {
    return err(`must contain at most ${MAX_PLACEHOLDERS} placeholders`);
  }
  if (texts.length > 1) reads.add("body");
  const pieces: ((context: Rendering) => string)[] = [];
  for (const text of texts) {
    const compiled = compileTemplate<Rendering>(text, (placeholder) => bind(placeholder, parts, reads));
    if (!compiled.ok) return compiled;
    pieces.push(compiled.value);
  }
  return ok({
    reads,
    render(view, use) {
      const rendering: Rendering = { view, ...use, missing: undefined };
      const rendered: (string | Buffer)[] = [];
      pieces.forEach((piece, index) => {
        if (index > 0) rendered.push(view.request.body);
        rendered.push(piece(rendering));
      });
      return rendering.missing === undefined ? ok(rendered) : err(rendering.missing);
    },
  });
}

function bind(
  { name, filters }: Placeholder,
  parts: SigningParts,
  reads: Set<string>,
): Result<(context: Rendering) => string, string> {
  const isOptional = filters[0] === "optional";
  const rest = isOptional ? filters.slice(1) : filters;
  const filter = compileFilters(rest, { hmac: false });
  if (!filter.ok) return filter;
  const noteRead = (source: string): void => {
    reads.add(source);
  };
  const read = name === "body" ? readBody(rest, noteRead) : findReader(name, parts, noteRead);
  if (!read.ok) return read;
  return ok((context) => {
    const value = read.value(context);
    if (value !== undefined) return filter.value(value);
    if (!isOptional) context.missing ??= name;
    return "";
  });
}

type Read = (context: Rendering) => string | Buffer | undefined;

function readBody(filters: readonly string[], note: (source: string) => void): Result<Read, string> {
  note("body");
  if (filters[0] === "crc32") note(WEAK_BODY);
  return ok(
    takesBytes(filters) ? ({ view }) => view.request.body : ({ view }) => view.request.body.toString("utf8"),
  );
}

function findReader(name: string, parts: SigningParts, note: (source: string) => void): Result<Read, string> {
  const colon = name.indexOf(":");
  if (colon > 0) return compileNamedSource(name.slice(0, colon), name.slice(colon + 1), note);
  const of = (read: ReadText): Result<Read, string> => ok(({ view }) => read(view));
  switch (name) {
    case "timestamp":
    case "id": {
      const source = name === "id" ? parts.deliveryId : parts.timestamp?.source;
      if (source === undefined) return err(`needs \`${name === "id" ? "deliveryId" : name}\``);
      note(toReadKey(source));
      return of(compileSource(source));
    }
    case "parameters": {
      if (parts.parameters === undefined) return err("needs `parameters`");
      for (const key of listReadsOfParameters(parts.parameters)) note(key);
      return of(compileParameters(parts.parameters));
    }
    case "signedHeaders":
      if (parts.signedHeaders === undefined) return err("needs `signedHeaders`");
      return of(compileSignedHeaders(parts.signedHeaders));
    default: {
      const read = Object.hasOwn(REQUEST_READERS, name) ? REQUEST_READERS[name] : undefined;
      if (read === undefined) return err("is not a known placeholder");
      if (name === "secret") note("secret");
      if (name === "url" || name === "target") note("query");
      return ok(read);
    }
  }
}

function compileNamedSource(
  where: string,
  rest: string,
  note: (source: string) => void,
): Result<Read, string> {
  const source = findSource(where, rest);
  if (!source.ok) return source;
  note(toReadKey(source.value));
  const read = compileSource(source.value);
  return ok(({ view }) => read(view));
}

/** Formats the location of a request value as a name such as `header:x-id`. Header names become lower case. */
export const toReadKey = ({ in: where, name }: MessageSource): string =>
  `${where}:${where === "header" ? name.toLowerCase() : name}`;

/** Lists the values that a signature over parameters covers: the whole form or query, or only the named parameters. */
function listReadsOfParameters({ of, names, omit }: ParameterConfig): readonly string[] {
  const place = of === "query" ? "query" : "body";
  if (names === undefined) return [place];
  const prefix = of === "query" ? "query:" : "body:$.";
  return names.filter((name) => !omit.includes(name)).map((name) => prefix + name);
}

const REQUEST_READERS: Readonly<Record<string, Read>> = {
  secret: ({ secret }) => secret,
  method: ({ view }) => view.request.method,
  url: (context) => computeUrl(context),
  target: (context) => stripOrigin(computeUrl(context)),
  path: (context) => withoutQuery(stripOrigin(computeUrl(context))),
  host: ({ baseUrl }) => new URL(baseUrl).host,
};

const HOOKS = "/hooks/";

/** Computes the URL that the sender called: the public base URL, plus the path and query as received. */
function computeUrl({ view, baseUrl }: Rendering): string {
  const { target } = view.request;
  const start = target.indexOf(HOOKS);
  return baseUrl.replace(/\/$/, "") + (start < 0 ? target : target.slice(start));
}

const stripOrigin = (url: string): string => url.replace(/^[a-z]+:\/\/[^/]*/i, "");
const withoutQuery = (target: string): string => target.replace(/\?.*$/s, "");
