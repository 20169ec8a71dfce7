import type { Finding } from "../../../lib/errors.ts";
import { createPathReader, type RulePath } from "../../../normalize/compile.ts";
import { BODY_ROOT, ITEM_ROOT } from "../../../normalize/profile.ts";
import { pollingProfile } from "../profile.ts";

export type PathSyntax = "rfc9535" | "jsonpath-plus";

export interface ReadPaths {
  readonly ofItem: readonly RulePath[];
  readonly ofPage: readonly RulePath[];
}

/** Compiles the paths in a channel's settings. Each error names the setting that contains the path. */
export interface PathReader {
  /** Compiles a path that is applied to an item: `$` is the item. */
  readonly ofItem: CompilePath;
  /** Compiles a path that is applied to a page: `$` is the body of the page. */
  readonly ofPage: CompilePath;
  /** Compiles the setting `itemsPath`. The result is not part of `compiled`, because `itemsPath` only locates items. */
  readonly ofItems: CompilePath;
  readonly findings: readonly Finding[];
  /** Returns the distinct paths that `ofItem` and `ofPage` have compiled so far. */
  readonly compiled: () => ReadPaths;
}

/** Returns the compiled path, or `undefined` if the setting is missing or the path is invalid. */
type CompilePath = (text: string | undefined, setting: string) => RulePath | undefined;

export function createPollPathReader(syntax: PathSyntax): PathReader {
  const named = pollingProfile.roots;
  const findings: Finding[] = [];
  const readerOf = (item: typeof ITEM_ROOT) => createPathReader({ syntax, item, named }, findings);
  const ofItem = new Set<RulePath>();
  const ofPage = new Set<RulePath>();
  return {
    ofItem: recordPaths(readerOf(ITEM_ROOT), ofItem),
    ofPage: recordPaths(readerOf(BODY_ROOT), ofPage),
    ofItems: readerOf(BODY_ROOT),
    findings,
    compiled: () => ({ ofItem: [...ofItem], ofPage: [...ofPage] }),
  };
}

const recordPaths =
  (read: CompilePath, compiled: Set<RulePath>): CompilePath =>
  (text, setting) => {
    const path = read(text, setting);
    if (path !== undefined) compiled.add(path);
    return path;
  };
