import { z } from "zod";
import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import { compileTemplate } from "../../../lib/template.ts";
import { appendToQuery, removeFromQuery } from "../../../lib/url-query.ts";
import type { OutboundRequest } from "../../../net/outbound.ts";
import { exceedsDepth } from "../../../normalize/body/items.ts";
import {
  FIELD_VALUE,
  findUrlError,
  headersSchema,
  querySchema,
  urlSchema,
} from "../../pull/request-fields.ts";
import {
  bindPlaceholder,
  FILTER_NAMES,
  type TemplateContext,
  type TemplateNames,
} from "./template-values.ts";

const MIB = 1024 * 1024;
/** Maximum nesting depth of the request body. Building a deeper body would cost CPU time on every request. */
const MAX_BODY_DEPTH = 16;
/** Matches a URL whose origin contains no placeholder, so that a placeholder cannot change which server is called. */
const ORIGIN = /^https?:\/\/[^/?#\\{}]+(?:[/?]|$)/i;

const bodySchema = z
  .union([z.string().max(MIB), z.record(z.string(), z.unknown())])
  .refine((body) => !exceedsDepth(body, MAX_BODY_DEPTH), {
    message: `must not be nested deeper than ${MAX_BODY_DEPTH} levels`,
  });

/** Settings of the request. All strings are templates, except the names of headers and query parameters. */
export const requestSchema = z
  .strictObject({
    method: z
      .enum(["GET", "POST"])
      .default("GET")
      .describe("HTTP method. Failed calls are retried within a poll only if it is GET."),
    url: urlSchema(findUrlTemplateError).describe(
      "URL that returns the items. Placeholder values are percent-encoded. The scheme, host and port must not contain placeholders.",
    ),
    headers: headersSchema(["if-modified-since", "if-none-match"]),
    query: querySchema,
    body: bodySchema
      .optional()
      .describe(
        "Request body for POST. An object is sent as JSON, and each string in it is a template. For a string, set the content-type in `headers`.",
      ),
  })
  .describe(
    `The request that returns the items. Required without \`preset\`. It may contain placeholders. The value of {{cursor}} is the position of the source: a time, a number or a token. The value of {{page}} is the page selected by \`pagination\`. The value of {{now}} is the start of the poll, and {{lastPollAt}} is the start of the last completed poll. A filter sets the format, as in {{cursor | iso}}. Available filters: ${FILTER_NAMES.join(", ")}. Query parameters, headers and body members without a value are left out.`,
  );

export type RequestConfig = z.output<typeof requestSchema>;

export const parseOrigin = ({ url }: Pick<RequestConfig, "url">): string =>
  new URL(ORIGIN.exec(url)?.[0] ?? url).origin;

function findUrlTemplateError(text: string): string | undefined {
  const start = ORIGIN.exec(text)?.[0];
  if (start === undefined || URL.parse(start) === null) {
    return "must not contain placeholders before the path, and the host and port must be followed by /, ? or nothing";
  }
  return findUrlError(text.replace(/\{\{[^{}]*\}\}/g, "x"));
}

export interface PageParameters {
  /** Value of `{{page}}`. `undefined` if the page has no number or token. */
  readonly page?: string;
  /** URL of a page. Replaces the whole configured URL, including its query. */
  readonly url?: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Fields to add to the request body, which must be an object. */
  readonly body?: Readonly<Record<string, string>>;
}

export interface RequestTemplate {
  readonly names: ReadonlySet<string>;
  /**
   * Builds the request. Omits query parameters, headers and body fields whose value is not known yet.
   * @throws InvalidRequestError when a value is not allowed in a header
   */
  readonly render: (context: TemplateContext, page: PageParameters) => OutboundRequest;
}

/** Thrown when a value from the server is not allowed in a request. The message is shown to the channel's owner. */
export class InvalidRequestError extends Error {
  override readonly name = "InvalidRequestError";
}

type Render<T> = (context: TemplateContext) => T;

/** Compiles the request settings. Each error names the field with the invalid placeholder. */
export function compileRequest(
  config: RequestConfig,
  names: TemplateNames,
): Result<RequestTemplate, readonly Finding[]> {
  const findings: Finding[] = [];
  const used = new Set<string>();

  /** @param own is filled with the placeholder names in this text */
  function compile(text: string, path: string, own = new Set<string>(), encodes = false): Render<string> {
    const template = compileTemplate<TemplateContext>(text, (placeholder) => {
      const { filters, name } = placeholder;
      own.add(name);
      used.add(name);
      const isEncoded = !encodes || filters.includes("urlencoded");
      return bindPlaceholder(isEncoded ? placeholder : { name, filters: [...filters, "urlencoded"] }, names);
    });
    if (template.ok) return template.value;
    findings.push({ path, message: template.error });
    return () => "";
  }

  /** Compiles a template that returns `undefined` while a value is unknown. `JSON.stringify` omits fields that are `undefined`. */
  function compileOptional(text: string, path: string): Render<string | undefined> {
    const own = new Set<string>();
    const render = compile(text, path, own);
    return (context) => ([...own].every((name) => context.has(name)) ? render(context) : undefined);
  }

  function compileMember(value: unknown, path: string): Render<unknown> {
    if (typeof value === "string") return compileOptional(value, path);
    if (typeof value !== "object" || value === null) return () => value;
    if (Array.isArray(value)) {
      const children = value.map((child, index) => compileMember(child, `${path}[${index}]`));
      return (context) => children.map((render) => render(context) ?? null);
    }
    const members = Object.entries(value).map(
      ([name, child]) => [name, compileMember(child, `${path}.${name}`)] as const,
    );
    return (context) => Object.fromEntries(members.map(([name, render]) => [name, render(context)]));
  }

  function compileAll(texts: Readonly<Record<string, string>>, path: string): Render<[string, string][]> {
    const all = Object.entries(texts).map(
      ([name, text]) => [name, compileOptional(text, `${path}.${name}`)] as const,
    );
    return (context) =>
      all.flatMap(([name, render]) => {
        const value = render(context);
        return value === undefined ? [] : [[name, value]];
      });
  }

  const { body, method } = config;
  const url = compile(config.url, "url", undefined, true);
  const headers = compileAll(config.headers, "headers");
  const query = compileAll(config.query, "query");
  const content = typeof body === "object" ? compileMember(body, "body") : undefined;
  const text = typeof body === "string" ? compile(body, "body") : undefined;
  if (findings.length > 0) return err(findings);

  function renderUrl(context: TemplateContext, page: PageParameters): string {
    if (page.url !== undefined) return page.url;
    const address = new URL(url(context));
    const paging = Object.entries(page.query ?? {});
    appendToQuery(address, query(context));
    removeFromQuery(
      address,
      paging.map(([name]) => name),
    );
    appendToQuery(address, paging);
    return address.href;
  }

  function renderBody(context: TemplateContext, page: PageParameters): string | undefined {
    if (content === undefined) return text?.(context);
    return JSON.stringify({ ...(content(context) as object), ...page.body });
  }

  return ok({
    names: used,
    render(values, page) {
      const context =
        page.page === undefined ? values : new Map([...values, ["page", { kind: "text", text: page.page }]]);
      const rendered: Record<string, string> = { accept: ACCEPT };
      const sent = renderBody(context, page);
      if (content !== undefined) rendered["content-type"] = "application/json";
      for (const [name, rendering] of headers(context)) {
        // Trims whitespace, because it is not part of a header value (RFC 9110, section 5.5).
        const value = rendering.replace(/^[\t ]+|[\t ]+$/g, "");
        if (!FIELD_VALUE.test(value)) {
          throw new InvalidRequestError(
            `the value of header ${name} contains characters that are not allowed`,
          );
        }
        rendered[name.toLowerCase()] = value;
      }
      return {
        method,
        url: renderUrl(context, page),
        headers: rendered,
        ...(sent !== undefined && { body: sent }),
      };
    },
  });
}

const ACCEPT = "application/json, application/x-ndjson;q=0.9, application/xml;q=0.8, */*;q=0.5";
