const LINK =
  /<([^<>]*)>((?:\s*;\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)/g;
const PARAMETER = /;\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))/g;

/**
 * The target of the first link of a relation (RFC 8288): its address as it stands there, which may be relative; undefined where
 * there is none. Of several `rel` the first counts (section 3.3); relations are compared without regard to case. A link that has
 * an `anchor` is about another document.
 */
export function findLink(
  header: string | readonly string[] | undefined,
  relation: string,
): string | undefined {
  for (const line of [header ?? []].flat()) {
    for (const [, target = "", parameters = ""] of line.matchAll(LINK)) {
      const values = new Map<string, string>();
      for (const [, name = "", quoted, plain = ""] of parameters.matchAll(PARAMETER)) {
        const key = name.toLowerCase();
        if (!values.has(key)) values.set(key, quoted?.replace(/\\(.)/g, "$1") ?? plain);
      }
      const relations = (values.get("rel") ?? "").toLowerCase().split(/\s+/);
      if (relations.includes(relation.toLowerCase()) && !values.has("anchor")) return target;
    }
  }
  return undefined;
}
