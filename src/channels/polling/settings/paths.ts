import type { Finding } from "../../../lib/errors.ts";
import { createPathReader, type RulePath } from "../../../normalize/compile.ts";
import { BODY_ROOT, ITEM_ROOT } from "../../../normalize/profile.ts";
import { pollingProfile } from "../profile.ts";

export type PathSyntax = "rfc9535" | "jsonpath-plus";

/** Paths that a poll may read of each item, and of a page. */
export interface ReadPaths {
  readonly ofItem: readonly RulePath[];
  readonly ofPage: readonly RulePath[];
}

/** Compiles paths of one channel, and notes those that are wrong under the names of their settings. */
export interface PathReader {
  /** `$` is an item. */
  readonly ofItem: CompilePath;
  /** `$` is the body of a page. */
  readonly ofPage: CompilePath;
  /** Likewise, for the path of items: they are found by it, and it is read no more. */
  readonly ofItems: CompilePath;
  readonly findings: readonly Finding[];
  /** All that `ofItem` and `ofPage` have compiled, each once. */
  readonly compiled: () => ReadPaths;
}

/** Undefined where the setting is, and where the path does not compile. */
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
