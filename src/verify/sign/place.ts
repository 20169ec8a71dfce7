import { parseExactly } from "../../event/exact-json.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { parseBodyPath, type Step } from "../message/body-path.ts";

export interface OutgoingRequest {
  readonly method: string;
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly target: string;
  readonly body: Buffer;
}

export interface Place {
  readonly in: "header" | "query" | "body";
  readonly name: string;
}

/** Splits a request target into its path and its query. The query is empty if there is none. */
export function splitTarget(target: string): readonly [path: string, query: string] {
  const [path = ""] = target.split("?", 1);
  return [path, target.slice(path.length + 1)];
}

/** Sets a value in a header, a query parameter or the body of a request. The error explains why the value cannot be set. */
export function putInto(
  request: OutgoingRequest,
  place: Place,
  change: (before: unknown) => unknown,
): Result<OutgoingRequest, string> {
  const { headers, target, body } = request;
  switch (place.in) {
    case "header": {
      const name = place.name.toLowerCase();
      return ok({ ...request, headers: { ...headers, [name]: String(change(headers[name])) } });
    }
    case "query": {
      const [path, query] = splitTarget(target);
      const values = new URLSearchParams(query);
      values.set(place.name, String(change(values.get(place.name) ?? undefined)));
      return ok({ ...request, target: `${path}?${values}` });
    }
    case "body": {
      const steps = parseBodyPath(place.name);
      if (!steps.ok) return steps;
      const text = body.toString();
      const changed = isForm(headers)
        ? putIntoForm(text, steps.value, change)
        : putIntoJson(text, steps.value, change);
      return changed.ok ? ok({ ...request, body: Buffer.from(changed.value) }) : changed;
    }
    default:
      return place.in satisfies never;
  }
}

const isForm = (headers: OutgoingRequest["headers"]): boolean =>
  /^application\/x-www-form-urlencoded\b/i.test(headers["content-type"] ?? "");

function putIntoForm(
  text: string,
  steps: readonly Step[],
  change: (before: unknown) => unknown,
): Result<string, string> {
  const [step, ...others] = steps;
  if (others.length > 0 || typeof step?.key !== "string") return err("a form has only top-level fields");
  const form = new URLSearchParams(text);
  form.set(step.key, String(change(form.get(step.key) ?? undefined)));
  return ok(form.toString());
}

/** Sets a value in a JSON text. The rest of the text keeps its number spelling and escapes, but not its whitespace. */
function putIntoJson(
  text: string,
  steps: readonly Step[],
  change: (before: unknown) => unknown,
): Result<string, string> {
  let root: unknown;
  try {
    root = parseExactly(text);
  } catch {
    return err("the body is not valid JSON");
  }
  const found = changeAt(root, steps, change);
  return found ? ok(JSON.stringify(root)) : err("the body has no value at this path");
}

/** Changes the value at a path, in every element for `[*]`. Adds the last member of the path if it is missing. */
function changeAt(
  value: unknown,
  [step, ...rest]: readonly Step[],
  change: (before: unknown) => unknown,
): boolean {
  if (step === undefined || typeof value !== "object" || value === null) return false;
  const holder = value as Record<string, unknown>;
  const keys = step.key === undefined ? Object.keys(holder) : [String(step.key)];
  let isChanged = false;
  for (const key of keys) {
    if (rest.length > 0) {
      if (Object.hasOwn(holder, key) && changeAt(holder[key], rest, change)) isChanged = true;
    } else if (!Array.isArray(value) || Object.hasOwn(holder, key)) {
      holder[key] = change(holder[key]);
      isChanged = true;
    }
  }
  return isChanged;
}

const IN_HEADER = /^\$headers\['([^']+)'\]$/;
const IN_QUERY = /^\$query(?:\.(\w+)|\['([^']+)'\])$/;

/**
 * Converts a path of the preset to a place in the request. Uses the first item if there are several, and returns `undefined` for a
 * path that is too complex.
 */
export function parsePlace(path: string, itemsPath: string | undefined): Place | undefined {
  const header = IN_HEADER.exec(path)?.[1];
  if (header !== undefined) return { in: "header", name: header };
  const query = IN_QUERY.exec(path);
  if (query !== null) return { in: "query", name: query[1] ?? query[2] ?? "" };
  if (!/^\$(?:[.[]|$)/.test(path)) return undefined;
  // An item path of `$` means that the body is an array of items.
  const firstItem = itemsPath === "$" ? "$[0]" : (itemsPath ?? "$").replaceAll("[*]", "[0]");
  return { in: "body", name: firstItem + path.slice(1) };
}
