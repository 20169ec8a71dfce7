import type { OpenApi } from "../support/documented.ts";

/** So many of each list are looked at one by one. */
const OF_EACH_LIST = 3;

/** Reads a path of the API; undefined where that is refused. */
export type Read = (path: string) => Promise<unknown>;

export interface ReadOperations {
  /** Templates of paths, of which one was read at least. */
  readonly seen: ReadonlySet<string>;
  /** Those that were refused for all ids that are known. */
  readonly refused: readonly string[];
  /** Those of which no id is known: the lists above them are empty. */
  readonly unknown: readonly string[];
}

/** Reads all that the API shows: every operation of its document that answers JSON to a GET, with ids from the lists above it. */
export async function readAll({ paths }: OpenApi, read: Read): Promise<ReadOperations> {
  const lists = new Map<string, readonly string[]>();
  const seen = new Set<string>();
  const refused = new Set<string>();
  const templates = Object.keys(paths).filter((path) => answersJson(paths[path].get));

  /** The addresses that a template stands for, as far as ids are known. */
  function expand(template: string): readonly string[] {
    const [, above, rest] = /^(.*)\/\{\w+\}([^{}]*)$/.exec(template) ?? [];
    if (above === undefined) return [template];
    return expand(above).flatMap((list) => (lists.get(list) ?? []).map((id) => `${list}/${id}${rest}`));
  }

  const depthOf = (path: string): number => path.split("/").length;
  for (const template of templates.toSorted((a, b) => depthOf(a) - depthOf(b))) {
    for (const path of expand(template)) {
      const answer = await read(path);
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

const answersJson = (operation: OpenApi): boolean =>
  operation?.responses?.["200"]?.content?.["application/json"] !== undefined;

const idOf = (row: { readonly id?: unknown } | null): readonly string[] =>
  typeof row?.id === "string" ? [row.id] : [];
