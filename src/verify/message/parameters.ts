import { err, ok, type Result, unwrap } from "../../lib/result.ts";
import { compileTemplate, type Template } from "../../lib/template.ts";
import type { SignedMessageConfig } from "./config.ts";
import { compileSource, type ReadText, type RequestView, scalarToText } from "./request-view.ts";

export type ParameterConfig = NonNullable<SignedMessageConfig["parameters"]>;
type SignedHeaderConfig = NonNullable<SignedMessageConfig["signedHeaders"]>;

interface Pair {
  readonly name: string;
  readonly value: string;
}

/** Maximum number of signed parameters in a request. Real senders sign far fewer. */
const MAX_PARAMETERS = 1_000;
const MAX_SIGNED_HEADERS = 32;

export function compilePair(text: string): Result<Template<Pair>, string> {
  return compileTemplate<Pair>(text, ({ name, filters }) => {
    if (filters.length > 0) return err("must not have filters");
    if (name === "name") return ok((pair) => pair.name);
    if (name === "value") return ok((pair) => pair.value);
    return err("must be name or value");
  });
}

/**
 * Compiles the placeholder `{{parameters}}`. The value is `undefined` if the request has too many parameters of the configured
 * kind, or none.
 */
export function compileParameters(config: ParameterConfig): ReadText {
  const write = unwrap(compilePair(config.pair), "pair");
  const { names, omit, order } = config;
  const wanted = names === undefined ? undefined : new Set(names);
  return (view) => {
    const all = readParameters(view, config.of);
    if (all === undefined) return undefined;
    const present =
      order === "listed" && names ? names.filter((name) => Object.hasOwn(all, name)) : Object.keys(all);
    const chosen = present.filter((name) => !omit.includes(name) && (wanted?.has(name) ?? true));
    if (chosen.length > MAX_PARAMETERS) return undefined;
    if (order === "name") chosen.sort();
    const written: string[] = [];
    for (const name of chosen) {
      for (const value of formatValues(all[name])) written.push(write({ name, value }));
    }
    return written.join(config.between);
  };
}

/**
 * Compiles the placeholder `{{signedHeaders}}`. The value is `undefined` if a listed header is missing or repeated, or if the list
 * is too long.
 */
export function compileSignedHeaders(config: SignedHeaderConfig): ReadText {
  const write = unwrap(compilePair(config.pair), "pair");
  const readList = compileSource(config.listedIn);
  return (view) => {
    const names = (readList(view) ?? "").split(new RegExp(`[${RegExp.escape(config.separator)}]`));
    const listed = names.map((name) => name.trim().toLowerCase()).filter((name) => name !== "");
    if (listed.length === 0 || listed.length > MAX_SIGNED_HEADERS) return undefined;
    const written: string[] = [];
    for (const name of listed) {
      const value = view.request.headers[name];
      if (typeof value !== "string") return undefined;
      written.push(write({ name, value }));
    }
    return written.join(config.between);
  };
}

function readParameters(
  view: RequestView,
  of: ParameterConfig["of"],
): Readonly<Record<string, unknown>> | undefined {
  if (of === "query") return view.query;
  // A signature over the fields of a form would not protect its files.
  if (view.isForm !== (of === "form") || view.hasFiles) return undefined;
  const { body } = view;
  return typeof body === "object" && body !== null && !Array.isArray(body)
    ? (body as Readonly<Record<string, unknown>>)
    : undefined;
}

/** Returns the values of one parameter as text. The values of a repeated parameter are sorted, without duplicates. */
function formatValues(value: unknown): readonly string[] {
  if (Array.isArray(value)) return [...new Set(value.map(formatValue))].sort();
  return [formatValue(value)];
}

const formatValue = (value: unknown): string => scalarToText(value) ?? JSON.stringify(value) ?? "";
