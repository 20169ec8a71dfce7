import { parseJson } from "../event/parse-json.ts";

interface WithValues {
  readonly headers: object;
  readonly query: object;
}

/** Parses a stored delivery. `headers` and `query` get no prototype, so that names like `__proto__` are plain keys. */
export function parseWithPlainKeys<T extends WithValues>(text: string): T {
  const { headers, query, ...rest } = parseJson(text) as T;
  const plain = (values: object): object => Object.assign(Object.create(null), values);
  return { ...rest, headers: plain(headers), query: plain(query) } as T;
}
