import { createHash } from "node:crypto";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

// The document is JSON of the OpenAPI standard, whose types would add little here.
// biome-ignore lint/suspicious/noExplicitAny: see above
export type OpenApi = any;

export interface Exchange {
  readonly method: string;
  /** The path, relative to `/v1`. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Returns the first difference between a response and the document, or `undefined` when there is none. */
export type DocumentCheck = (exchange: Exchange) => string | undefined;

/** Statuses that any address may return, documented or not, because authentication runs before routing. */
const EVERYWHERE = new Set([401, 403, 404, 405, 429]);

/**
 * Cached checks by a digest of the document's paths and components. Gateways at different addresses have
 * the same digest.
 */
const checks = new Map<string, DocumentCheck>();

/** Creates a check of responses against an OpenAPI document: status, headers, media type and body. Unknown body fields are findings. */
export function createDocumentCheck(document: OpenApi): DocumentCheck {
  const { paths, components } = document;
  const digest = createHash("sha256")
    .update(JSON.stringify([paths, components]))
    .digest("base64");
  const check = checks.get(digest) ?? compileCheck(document);
  checks.set(digest, check);
  return check;
}

function compileCheck(document: OpenApi): DocumentCheck {
  // Each validator checks only a few responses, so fast compilation matters more than fast validation.
  const quick = { inlineRefs: false, code: { optimize: false } };
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true, ...quick });
  addFormats.default(ajv);
  ajv.addSchema(closed(document), "document");
  const operations = operationsOf(document);
  const validators = new Map<string, ValidateFunction>();

  function validate(pointer: string, body: unknown): string | undefined {
    const validator = validators.get(pointer) ?? ajv.compile({ $ref: `document#${pointer}` });
    validators.set(pointer, validator);
    return validator(body) ? undefined : ajv.errorsText(validator.errors?.slice(0, 5));
  }

  return ({ method, path, status, headers, text }) => {
    const verb = method === "HEAD" ? "get" : method.toLowerCase();
    const found = operations.find((one) => one.method === verb && one.pattern.test(path));
    const where = `${method} ${found?.path ?? path} → ${status}`;
    const finding = (message: string): string => `${where}: ${message}`;
    if (!found) return EVERYWHERE.has(status) ? undefined : finding("is not documented");
    const [response, pointer] = resolve(document, [...found.pointer, "responses", String(status)]);
    if (!response) return finding("the status is not documented");
    for (const [name, described] of Object.entries<OpenApi>(response.headers ?? {})) {
      const [header] = described.$ref ? resolve(document, described.$ref.slice(2).split("/")) : [described];
      if (header.required && !headers.has(name)) return finding(`the header ${name} is missing`);
    }
    if (method === "HEAD") return undefined;
    const [mediaType = ""] = (headers.get("content-type") ?? "").split(";");
    if (!response.content) return text === "" ? undefined : finding("has a body");
    if (!(mediaType in response.content)) return finding(`responds with ${mediaType}`);
    if (mediaType !== "application/json") return undefined;
    const invalid = validate(`${pointer}/content/application~1json/schema`, JSON.parse(text));
    return invalid === undefined ? undefined : finding(`${invalid} in ${text.slice(0, 500)}`);
  };
}

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly pattern: RegExp;
  readonly pointer: readonly string[];
}

/** Returns the operations below `/v1`, with fixed path segments before parameters. */
export function operationsOf(document: OpenApi): readonly Operation[] {
  return Object.entries<OpenApi>(document.paths)
    .filter(([, item]) => item.servers === undefined)
    .sort(([a], [b]) => (rank(a) < rank(b) ? -1 : 1))
    .flatMap(([path, item]) =>
      Object.keys(item).map((method) => ({
        method,
        path,
        pointer: ["paths", path, method],
        // A topic may contain unescaped slashes.
        pattern: new RegExp(
          `^${path
            .replace(/[.]/g, "\\.")
            .replace("{topic}", ".+")
            .replace(/\{\w+\}/g, "[^/]+")}$`,
        ),
      })),
    );
}

const rank = (path: string): string =>
  path
    .split("/")
    .map((segment) => (segment.startsWith("{") ? "1" : "0"))
    .join("");

/** Returns the node at this path and its JSON Pointer, with references resolved. */
function resolve(document: OpenApi, steps: readonly string[]): [OpenApi, string] {
  const found = steps.reduce((at: OpenApi, step) => at?.[step], document);
  if (typeof found?.$ref === "string") return resolve(document, found.$ref.slice(2).split("/"));
  return [found, steps.map((step) => `/${pointerStep(step)}`).join("")];
}

const pointerStep = (step: string): string =>
  encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"));

/** Returns a copy of the document in which objects reject undeclared fields. */
function closed(document: OpenApi): OpenApi {
  return JSON.parse(JSON.stringify(document), (key, value) =>
    value?.type === "object" && value.properties && !("additionalProperties" in value) && key !== "properties"
      ? { ...value, additionalProperties: false }
      : value,
  );
}
