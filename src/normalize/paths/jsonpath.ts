import { JSONPathError, type JSONPathQuery, jsonpath } from "json-p3";
import { LRUCache } from "lru-cache";
import { err, ok, type Result } from "../../lib/result.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { Location } from "../body/json-scan.ts";
import { BoundedEnvironment, boundQuery } from "./bounded-query.ts";
import { PlusQuery, parsePlusPath } from "./jsonpath-plus.ts";
import { createSingularPath, type Path, PathSyntaxError } from "./path.ts";

export interface PathRoot {
  /**
   * Whether names directly below the root are case-insensitive, such as HTTP header names. The names in the data are in lower case.
   */
  readonly hasLowerCaseNames?: boolean;
}

export interface PathCompilerOptions<R extends PathRoot> {
  readonly syntax: "rfc9535" | "jsonpath-plus";
  readonly item: R;
  /** Values at which a path can start with `$name`, keyed by name without the `$`. */
  readonly named: ReadonlyMap<string, R>;
}

export interface RootedPath<R> {
  readonly text: string;
  readonly root: R;
  readonly path: Path;
}

export type CompilePath<R> = (text: string) => Result<RootedPath<R>, string>;

/**
 * Cache that lets several channels share compiled paths. Each path takes more than a kilobyte of memory and tens of microseconds to
 * compile.
 */
export type PathCache = ReturnType<typeof createPathCache>;

export function createPathCache(maxPaths: number) {
  const compiled = new LRUCache<string, Result<RootedPath<PathRoot>, string>>(upToEntries(maxPaths));
  const ids = new WeakMap<object, number>();
  let lastId = 0;
  const getId = (roots: object): number => {
    const id = ids.get(roots) ?? ++lastId;
    ids.set(roots, id);
    return id;
  };
  return <R extends PathRoot>(options: PathCompilerOptions<R>): CompilePath<R> => {
    const compile = createPathCompiler(options);
    const prefix = `${options.syntax} ${getId(options.named)} ${getId(options.item)} `;
    return (text) => {
      // The cache key includes the names of the roots, so the cached path has a root of type `R`.
      const known = compiled.get(prefix + text) as Result<RootedPath<R>, string> | undefined;
      const path = known ?? compile(text);
      if (known === undefined) compiled.set(prefix + text, path);
      return path;
    };
  };
}

/**
 * Creates a function that compiles paths. Its errors state the problem and the position for the author of the path, and negative
 * indexes count from the end of an array.
 */
export function createPathCompiler<R extends PathRoot>(options: PathCompilerOptions<R>): CompilePath<R> {
  let opened: BoundedEnvironment | undefined;

  return (text) => {
    opened ??= new BoundedEnvironment();
    const environment = opened;
    if (!text.startsWith("$")) return err("a path must begin with $");
    const name = /^\$([A-Za-z][A-Za-z0-9_]*)/.exec(text)?.[1] ?? "";
    const root = name === "" ? options.item : options.named.get(name);
    if (root === undefined) return err(unknownRoot(name, options.named));
    // Replace `$name` by `$`, the only root that both libraries support. Offsets in error messages are corrected below.
    const relative = `$${text.slice(1 + name.length)}`;
    const fold = root.hasLowerCaseNames === true;
    try {
      const path =
        options.syntax === "rfc9535"
          ? compileStandard(environment, relative, fold)
          : compilePlus(environment, relative, fold);
      return ok({ text, root, path });
    } catch (error) {
      const reason = explain(error, text, name.length);
      const isOtherSyntax = options.syntax === "rfc9535" && isPlusPath(relative);
      return err(isOtherSyntax ? `${reason}; the path is valid with pathSyntax "jsonpath-plus"` : reason);
    }
  };
}

function compileStandard(environment: BoundedEnvironment, text: string, fold: boolean): Path {
  const query = environment.compile(text);
  if (query.singularQuery()) return createSingularPath(toLocation(query, fold));
  if (fold) foldNames(environment, query);
  boundQuery(environment, query);
  return {
    kind: "query",
    key: text,
    select: (root, budget) => environment.run(query, root, budget),
  };
}

function compilePlus(environment: BoundedEnvironment, text: string, fold: boolean): Path {
  const singular = findSingular(environment, text);
  if (singular !== undefined) return createSingularPath(toLocation(singular, fold));
  const [first, ...rest] = parsePlusPath(text);
  const steps = first === undefined ? [] : [fold ? first.toLowerCase() : first, ...rest];
  const query = new PlusQuery(steps);
  return { kind: "query", key: text, select: (root, budget) => query.select(root, budget) };
}

function isPlusPath(text: string): boolean {
  try {
    parsePlusPath(text);
    return true;
  } catch (error) {
    if (error instanceof PathSyntaxError) return false;
    throw error;
  }
}

function findSingular(environment: BoundedEnvironment, text: string): JSONPathQuery | undefined {
  try {
    const query = environment.compile(text);
    return query.singularQuery() ? query : undefined;
  } catch (error) {
    if (error instanceof JSONPathError) return undefined;
    throw error;
  }
}

function toLocation({ segments }: JSONPathQuery, fold: boolean): Location {
  const { IndexSelector, NameSelector } = jsonpath.selectors;
  const location: (string | number)[] = [];
  for (const [index, segment] of segments.entries()) {
    const [selector] = segment.selectors;
    if (selector instanceof IndexSelector) location.push(selector.index);
    if (selector instanceof NameSelector) {
      location.push(fold && index === 0 ? selector.name.toLowerCase() : selector.name);
    }
  }
  return location;
}

/** Modifies a compiled query so that names directly below the root are in lower case. */
function foldNames(environment: BoundedEnvironment, { segments: [first] }: JSONPathQuery): void {
  const { NameSelector } = jsonpath.selectors;
  for (const [index, selector] of (first?.selectors ?? []).entries()) {
    if (first === undefined || !(selector instanceof NameSelector)) continue;
    first.selectors[index] = new NameSelector(environment, selector.token, selector.name.toLowerCase());
  }
}

function unknownRoot(name: string, named: ReadonlyMap<string, unknown>): string {
  const known = ["$", ...[...named.keys()].map((root) => `$${root}`)];
  return `unknown root $${name}; use one of ${known.join(", ")}`;
}

function explain(error: unknown, text: string, shift: number): string {
  if (error instanceof PathSyntaxError) return withPosition(error.message, error.at, text, shift);
  if (error instanceof JSONPathError) {
    const message = error.message.replace(/ \('.*':-?\d+\)$/su, "");
    return withPosition(message, error.token.index, text, shift);
  }
  throw error;
}

function withPosition(message: string, at: number | undefined, text: string, shift: number): string {
  if (at === undefined) return message;
  const offset = at < 0 ? text.length : Math.min(at === 0 ? 0 : at + shift, text.length);
  return `${message} (at character ${offset + 1})`;
}
