import type { Finding } from "../../../lib/errors.ts";
import { createPathReader, type RulePath } from "../../../normalize/compile.ts";
import { BODY_ROOT, ITEM_ROOT } from "../../../normalize/profile.ts";
import { pollingProfile } from "../profile.ts";

export type PathSyntax = "rfc9535" | "jsonpath-plus";

export interface ReadPaths {
  readonly ofItem: readonly RulePath[];
  readonly ofPage: readonly RulePath[];
}

/** Compiles the paths in one channel's settings. Errors name the setting. */
export interface PathReader {
  /** Compiles a path over an item: its `$` is the item. */
  readonly ofItem: CompilePath;
  /** Compiles a path over a page: its `$` is the page's body. */
  readonly ofPage: CompilePath;
  /** Compiles `itemsPath`. It is excluded from `compiled`, because it only locates items. */
  readonly ofItems: CompilePath;
  readonly findings: readonly Finding[];
  /** Returns all paths that `ofItem` and `ofPage` have compiled so far, without duplicates. */
  readonly compiled: () => ReadPaths;
}

/** Returns `undefined` if the setting is `undefined` or the path does not compile. */
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
