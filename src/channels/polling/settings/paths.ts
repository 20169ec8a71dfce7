import type { Finding } from "../../../lib/errors.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { createPathCompiler } from "../../../normalize/paths/jsonpath.ts";
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

export function createPathReader(syntax: "rfc9535" | "jsonpath-plus"): PathReader {
  const named = pollingProfile.roots;
  const findings: Finding[] = [];
  const reader = (root: typeof ITEM_ROOT): PathOf => {
    const compile = createPathCompiler({ syntax, item: root, named });
    return (text, setting) => {
      if (text === undefined) return undefined;
      const path = compile(text);
      if (path.ok) return path.value;
      findings.push({ path: setting, message: path.error });
      return undefined;
    };
  };
  return { ofItem: reader(ITEM_ROOT), ofPage: reader(BODY_ROOT), findings };
}
