const LINK =
  /<([^<>]*)>((?:\s*;\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)/g;
const PARAMETER = /;\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))/g;

/**
 * Returns the target URL of the first link with the given relation in `Link` headers (RFC 8288). Returns `undefined` if there is none. The
 * URL may be relative. Only the first `rel` of a link counts (section 3.3), and case does not matter. Links with an `anchor` are skipped,
 * because they describe another document.
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
