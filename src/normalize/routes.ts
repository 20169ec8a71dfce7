import type { ChannelConfig } from "../event/channel.ts";
import { parseJson } from "../event/parse-json.ts";
import type { Finding } from "../lib/errors.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { createPathReader, type RulePath } from "./compile.ts";
import type { PathCache } from "./paths/jsonpath.ts";
import { BODY_ROOT, HEADERS_ROOT, ITEM_ROOT, type KindProfile, QUERY_ROOT } from "./profile.ts";

/** Part of a request from which a path reads. Without a name, the path can select any header or query parameter. */
export type RoutePlace =
  | { readonly in: "body" }
  | { readonly in: "header" | "query"; readonly name: string | undefined };

/** Compiles the paths of an intake's route keys, in order. The error lists every invalid path, such as `routeBy[1]`. */
export function compileRoutes(
  { roots }: KindProfile,
  { pathSyntax }: PathSettings,
  routeBy: readonly string[],
  pathCache?: PathCache,
): Result<readonly RulePath[], readonly Finding[]> {
  const findings: Finding[] = [];
  const compile = createPathReader(
    { syntax: toSyntax(pathSyntax), item: ITEM_ROOT, named: roots },
    findings,
    pathCache,
  );
  const paths = routeBy.flatMap((text, index) => compile(text, `routeBy[${index}]`) ?? []);
  return findings.length > 0 ? err(findings) : ok(paths);
}

const BODY_ROOTS = new Map([["body", BODY_ROOT]]);

/** Compiles the `itemsPath` of a channel whose settings were checked before. */
export function compileItemsPath({ pathSyntax }: PathSettings, text: string): RulePath {
  const compile = createPathReader({ syntax: toSyntax(pathSyntax), item: ITEM_ROOT, named: BODY_ROOTS }, []);
  const path = compile(text, "itemsPath");
  if (path === undefined) throw new Error("an itemsPath does not compile although it was checked");
  return path;
}

/** A channel's config as stored, in which a setting of a later version may be missing. */
interface PathSettings {
  readonly pathSyntax?: unknown;
}

const toSyntax = (pathSyntax: unknown): ChannelConfig["pathSyntax"] =>
  pathSyntax === "jsonpath-plus" ? pathSyntax : "rfc9535";

export function getRoutePlace({ root, path }: RulePath): RoutePlace {
  if (root !== HEADERS_ROOT && root !== QUERY_ROOT) return { in: "body" };
  const [name] = path.kind === "singular" ? (parseJson(path.key) as readonly unknown[]) : [];
  return { in: root === QUERY_ROOT ? "query" : "header", name: typeof name === "string" ? name : undefined };
}
