import type { Finding } from "../../lib/errors.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { compileTemplate, type Template } from "../../lib/template.ts";
import type { OutboundRequest } from "../../net/outbound.ts";
import type { RequestSettings } from "./request-settings.ts";
import { bindPlaceholder, type TemplateContext, type TemplateNames } from "./template-values.ts";

/** What one page asks for besides what all of them do. */
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

/** RFC 9110 section 5.5. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

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
      for (const [name, value] of renderPresent(headers, context)) {
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
