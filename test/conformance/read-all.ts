import type { OpenApi } from "../support/documented.ts";

/** Number of entities of each list that are read one by one. */
const OF_EACH_LIST = 3;

/** Reads a path of the API. Returns `undefined` when the API rejects the request. */
export type Read = (path: string) => Promise<unknown>;

export interface ReadOperations {
  /** Path templates of which at least one path was read. */
  readonly seen: ReadonlySet<string>;
  /** Path templates that were rejected for all known ids. */
  readonly refused: readonly string[];
  /** Path templates without a known id, because the lists above them are empty. */
  readonly unknown: readonly string[];
}

/** Reads every operation of the document that returns JSON to a GET, with ids from the lists above it. */
export async function readAll({ paths }: OpenApi, read: Read): Promise<ReadOperations> {
  const lists = new Map<string, readonly string[]>();
  const seen = new Set<string>();
  const refused = new Set<string>();
  const templates = Object.keys(paths).filter((path) => answersJson(paths[path].get));

  /** Returns the template's paths for all known ids. */
  function expand(template: string): readonly string[] {
    const [, above, rest] = /^(.*)\/\{\w+\}([^{}]*)$/.exec(template) ?? [];
    if (above === undefined) return [template];
    return expand(above).flatMap((list) => (lists.get(list) ?? []).map((id) => `${list}/${id}${rest}`));
  }

  const depthOf = (path: string): number => path.split("/").length;
  for (const template of templates.toSorted((a, b) => depthOf(a) - depthOf(b))) {
    for (const path of expand(template)) {
      const answer = await read(path + requiredQuery(paths[template].get));
      (answer === undefined ? refused : seen).add(template);
      if (Array.isArray(answer)) lists.set(path, answer.slice(0, OF_EACH_LIST).flatMap(idOf));
    }
  }
  return {
    seen,
    refused: [...refused].filter((template) => !seen.has(template)),
    unknown: templates.filter((template) => !seen.has(template) && !refused.has(template)).sort(),
  };
}

/** Returns a query with the examples of all required parameters. */
function requiredQuery({ parameters = [] }: OpenApi): string {
  const required = parameters.filter((one: OpenApi) => one.in === "query" && one.required);
  const given = required.map(({ name, schema }: OpenApi) => [name, schema.examples[0]]);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

const answersJson = (operation: OpenApi): boolean =>
  operation?.responses?.["200"]?.content?.["application/json"] !== undefined;

const idOf = (row: { readonly id?: unknown } | null): readonly string[] =>
  typeof row?.id === "string" ? [row.id] : [];
