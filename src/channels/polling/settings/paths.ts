import type { Finding } from "../../../lib/errors.ts";
import { createPathReader, type RulePath } from "../../../normalize/compile.ts";
import { BODY_ROOT, ITEM_ROOT } from "../../../normalize/profile.ts";
import { pollingProfile } from "../profile.ts";

/** Compiles paths of one channel, and notes those that are wrong under the names of their settings. */
export interface PathReader {
  /** `$` is an item. */
  readonly ofItem: PathOf;
  /** `$` is the body of a page. */
  readonly ofPage: PathOf;
  readonly findings: readonly Finding[];
}

/** Undefined where the setting is, and where the path does not compile. */
type PathOf = (text: string | undefined, setting: string) => RulePath | undefined;

export function createPollPathReader(syntax: "rfc9535" | "jsonpath-plus"): PathReader {
  const named = pollingProfile.roots;
  const findings: Finding[] = [];
  const ofItem = createPathReader({ syntax, item: ITEM_ROOT, named }, findings);
  const ofPage = createPathReader({ syntax, item: BODY_ROOT, named }, findings);
  return { ofItem, ofPage, findings };
}
