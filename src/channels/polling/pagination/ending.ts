import { err, ok, type Result } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { selectsValue } from "../config/equals.ts";
import type { PathReader } from "../config/paths.ts";
import type { Page } from "../fetch/page.ts";
import type { PaginationConfig } from "./schema.ts";

interface Ending {
  /** Name of the setting with its path, for messages. */
  readonly setting: string;
  /** Returns whether there are more pages. */
  readonly hasMore: (page: Page) => Result<boolean, string>;
}

/** Compiles the setting that says which page is the last one. Returns `undefined` if there is none. */
export function compileEnding(config: PaginationConfig, paths: PathReader): Ending | undefined {
  if (config.by === "linkHeader") return undefined;
  const { hasMore, hasMorePath, lastPagePath } = config;
  if (hasMore !== undefined) {
    const path = paths.ofPage(hasMore.path, "pagination.hasMore.path");
    return {
      setting: `\`pagination.hasMore\` (${hasMore.path})`,
      hasMore: (page) => ok(selectsValue(page, path, hasMore.equals)),
    };
  }
  const [name, text] =
    lastPagePath === undefined ? ["hasMorePath", hasMorePath] : ["lastPagePath", lastPagePath];
  const path = paths.ofPage(text, `pagination.${name}`);
  if (path === undefined) return undefined;
  const setting = `\`pagination.${name}\` (${path.text})`;
  return {
    setting,
    hasMore(page) {
      const flag = readFlag(page, path);
      if (flag !== undefined) return ok(flag === (name === "hasMorePath"));
      // A response without items, such as one with status 204, may have no other members either.
      return page.itemCount === 0 ? ok(false) : err(`${setting} ${describeFlag(page, path)}`);
    },
  };
}

/** Returns the boolean that a path selects, or `undefined` for any other value. XML has only text values, so texts count too. */
export function readFlag(page: Pick<Page, "read">, path: RulePath): boolean | undefined {
  const found = String(page.read(path));
  return found === "true" ? true : found === "false" ? false : undefined;
}

/** Says why the value that a path selects is not a boolean. */
export function describeFlag(page: Pick<Page, "read">, path: RulePath): string {
  const found = page.read(path);
  const shown = found === undefined ? "no value" : JSON.stringify(found).slice(0, MAX_SHOWN_CHARS);
  return `selects ${shown}, but must select true or false. For another value, or if only some pages have it, use \`hasMore\` with \`path\` and \`equals\``;
}

const MAX_SHOWN_CHARS = 100;
