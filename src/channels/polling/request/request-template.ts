import { z } from "zod";
import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import { compileTemplate, type Template } from "../../../lib/template.ts";
import type { OutboundRequest } from "../../../net/outbound.ts";
import { exceedsDepth } from "../../../normalize/body/depth.ts";
import {
  FIELD_VALUE,
  flawOfUrl,
  headersSettings,
  querySettings,
  urlSettings,
} from "../../pull/request-settings.ts";
import {
  bindPlaceholder,
  FILTER_NAMES,
  type TemplateContext,
  type TemplateNames,
} from "./template-values.ts";

const MIB = 1024 * 1024;
/** Deeper bodies are nobody's query, and would be walked on every request. */
const MAX_BODY_DEPTH = 16;
/** The text before the first placeholder must hold all that decides who is called. */
const ORIGIN = /^https?:\/\/[^/?#\\{}]+(?:[/?]|$)/i;

const bodySchema = z
  .union([z.string().max(MIB), z.record(z.string(), z.unknown())])
  .refine((body) => !exceedsDepth(body, MAX_BODY_DEPTH), {
    message: `nests deeper than ${MAX_BODY_DEPTH}`,
  });

/** The request of a poll. All texts of it but names are templates. */
export const requestSettings = z
  .strictObject({
    method: z
      .enum(["GET", "POST"])
      .default("GET")
      .describe("Failed calls are tried again within a poll only where it is GET."),
    url: urlSettings(flawOfTemplate).describe(
      "Where items are asked for. What is put in after a placeholder is percent-encoded; scheme, host and port hold none.",
    ),
    headers: headersSettings(["if-modified-since", "if-none-match"]),
    query: querySettings,
    body: bodySchema
      .optional()
      .describe(
        "Sent with a POST: an object as JSON, in which each text is a template; or a text, for which `headers` names the content-type.",
      ),
  })
  .describe(
    `How items are asked for, with placeholders: {{cursor}} is where the source stands (an instant, a number, a token), {{page}} the page of \`pagination\`, {{now}} the time of the poll, {{lastPollAt}} that of the last one that came to its end. Filters say how they are written: {{cursor | iso}}; there are ${FILTER_NAMES.join(", ")}. Query parameters, headers and members of the body whose value does not exist yet are left out.`,
  );

export type RequestSettings = z.output<typeof requestSettings>;

/** Scheme, host and port of all calls of a channel. */
export const originOf = ({ url }: Pick<RequestSettings, "url">): string =>
  new URL(ORIGIN.exec(url)?.[0] ?? url).origin;

function flawOfTemplate(text: string): string | undefined {
  const start = ORIGIN.exec(text)?.[0];
  if (start === undefined || URL.parse(start) === null) {
    return "must name its host and port without placeholders, and end or go on with / after them";
  }
  return flawOfUrl(text.replace(/\{\{[^{}]*\}\}/g, "x"));
}

/** Parts of the request that differ from page to page. */
export interface PageParameters {
  /** In place of the whole address, its query included. */
  readonly url?: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Members of a body that is an object. */
  readonly body?: Readonly<Record<string, string>>;
}

export interface RequestTemplate {
  /** The names that stand anywhere in it. */
  readonly names: ReadonlySet<string>;
  /**
   * Query parameters, headers and members of the body with a value that does not exist yet are left out.
   *
   * @throws InvalidRequestError where a value cannot stand in a header.
   */
  readonly render: (context: TemplateContext, page: PageParameters) => OutboundRequest;
}

/** A value that came from a server makes no request. The message is for the channel's owner. */
export class InvalidRequestError extends Error {
  override readonly name = "InvalidRequestError";
}

interface Part {
  readonly names: ReadonlySet<string>;
  readonly render: Template<TemplateContext>;
}

type Leaf = Part | Leaves | readonly Leaf[] | { readonly literal: unknown };
interface Leaves {
  readonly members: readonly (readonly [name: string, value: Leaf])[];
}

/** Compiles the request of a channel; the findings name the fields in which a placeholder is wrong. */
export function compileRequest(
  settings: RequestSettings,
  names: TemplateNames,
): Result<RequestTemplate, readonly Finding[]> {
  const findings: Finding[] = [];
  const used = new Set<string>();

  function compile(text: string, path: string, encodes = false): Part {
    const own = new Set<string>();
    const template = compileTemplate<TemplateContext>(text, (placeholder) => {
      own.add(placeholder.name);
      used.add(placeholder.name);
      const isEncoded = !encodes || placeholder.filters.includes("urlencoded");
      return bindPlaceholder(
        isEncoded ? placeholder : { ...placeholder, filters: [...placeholder.filters, "urlencoded"] },
        names,
      );
    });
    if (template.ok) return { names: own, render: template.value };
    findings.push({ path, message: template.error });
    return { names: own, render: () => "" };
  }

  function compileLeaf(value: unknown, path: string): Leaf {
    if (typeof value === "string") return compile(value, path);
    if (Array.isArray(value)) return value.map((child, index) => compileLeaf(child, `${path}[${index}]`));
    if (typeof value !== "object" || value === null) return { literal: value };
    return {
      members: Object.entries(value).map(([name, child]) => [name, compileLeaf(child, `${path}.${name}`)]),
    };
  }

  const compileAll = (values: Readonly<Record<string, string>>, path: string) =>
    Object.entries(values).map(([name, text]) => [name, compile(text, `${path}.${name}`)] as const);

  const { body, method } = settings;
  const url = compile(settings.url, "url", true);
  const headers = compileAll(settings.headers, "headers");
  const query = compileAll(settings.query, "query");
  const content = typeof body === "object" ? compileLeaf(body, "body") : undefined;
  const text = typeof body === "string" ? compile(body, "body") : undefined;
  if (findings.length > 0) return err(findings);

  function renderUrl(context: TemplateContext, page: PageParameters): string {
    if (page.url !== undefined) return page.url;
    const address = new URL(url.render(context));
    for (const [name, value] of renderPresent(query, context)) address.searchParams.append(name, value);
    for (const [name, value] of Object.entries(page.query ?? {})) address.searchParams.set(name, value);
    return address.href;
  }

  function renderBody(context: TemplateContext, page: PageParameters): string | undefined {
    if (content === undefined) return text?.render(context);
    return JSON.stringify({ ...(renderLeaf(content, context) as object), ...page.body });
  }

  return ok({
    names: used,
    render(context, page) {
      const rendered: Record<string, string> = { accept: ACCEPT };
      const sent = renderBody(context, page);
      if (content !== undefined) rendered["content-type"] = "application/json";
      for (const [name, rendering] of renderPresent(headers, context)) {
        // White space around a value is no part of it (RFC 9110, section 5.5).
        const value = rendering.replace(/^[\t ]+|[\t ]+$/g, "");
        if (!FIELD_VALUE.test(value)) {
          throw new InvalidRequestError(`the header ${name} would hold what no header can`);
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

const isPresent = ({ names }: Part, context: TemplateContext): boolean =>
  [...names].every((name) => context.has(name));

const renderPresent = (parts: readonly (readonly [string, Part])[], context: TemplateContext) =>
  parts
    .filter(([, part]) => isPresent(part, context))
    .map(([name, part]) => [name, part.render(context)] as const);

/** Undefined for a text with a value that does not exist yet: JSON leaves out a member of that value. */
function renderLeaf(leaf: Leaf, context: TemplateContext): unknown {
  if ("literal" in leaf) return leaf.literal;
  if ("render" in leaf) return isPresent(leaf, context) ? leaf.render(context) : undefined;
  if (!("members" in leaf)) return leaf.map((child) => renderLeaf(child, context) ?? null);
  return Object.fromEntries(leaf.members.map(([name, child]) => [name, renderLeaf(child, context)]));
}
