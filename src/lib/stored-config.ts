import type { z } from "zod";
import type { Finding } from "./errors.ts";
import { findingsOf, formatPath } from "./findings.ts";
import { valueAt, wrongFields } from "./issue-message.ts";
import { err, ok, type Result } from "./result.ts";

export interface StoredConfig<T> {
  readonly config: T;
  /** Stored values that would be rejected if they were written now. They still apply. */
  readonly outdated: readonly Finding[];
}

type Path = readonly PropertyKey[];

/**
 * Parses a config that an earlier version stored. Stored values that the current schema rejects are kept and listed in `outdated`, and
 * unknown fields are dropped. Returns an error if the config cannot be parsed at all.
 */
export function readStoredConfig<T>(
  schema: z.ZodType<T>,
  stored: unknown,
): Result<StoredConfig<T>, readonly Finding[]> {
  const read = schema.safeParse(stored);
  if (read.success) return ok({ config: read.data, outdated: [] });
  const outdated = findingsOf(read.error, stored);
  const fields = wrongFields(read.error, stored).map(({ path }) => path);
  const unknown = read.error.issues.flatMap((issue) =>
    issue.code === "unrecognized_keys" ? issue.keys.map((key) => formatPath([...issue.path, key])) : [],
  );
  // Parse again without the invalid values. If that fails, parse without the top-level fields that contain them.
  for (const paths of [fields.map(aboveLists), fields.map((path) => path.slice(0, 1))]) {
    const rest = structuredClone(stored);
    for (const path of paths) removeAt(rest, path);
    const readRest = schema.safeParse(rest);
    if (!readRest.success) continue;
    const config = structuredClone(readRest.data);
    for (const path of paths)
      if (!unknown.includes(formatPath(path))) putBack(config, path, valueAt(stored, path));
    return ok({ config, outdated });
  }
  return err(outdated);
}

/**
 * Parses a stored config that was parsed successfully before.
 *
 * @throws Error if the config cannot be parsed
 */
export function getStoredConfig<T>(schema: z.ZodType<T>, stored: unknown): T {
  const read = readStoredConfig(schema, stored);
  if (read.ok) return read.value.config;
  throw new Error(read.error.map(({ path, message }) => `${path}: ${message}`).join("; "));
}

/**
 * Shortens a path so that it ends at the first list. Removing a single element would shift the elements behind it, so the whole
 * list is removed.
 */
function aboveLists(path: Path): Path {
  const index = path.findIndex((step) => typeof step === "number");
  return index < 0 ? path : path.slice(0, index);
}

function removeAt(value: unknown, path: Path): void {
  const parent = valueAt(value, path.slice(0, -1));
  const name = path.at(-1);
  if (isObject(parent) && name !== undefined) delete parent[name];
}

/** Restores a value that was removed before parsing, if its parent still exists. */
function putBack(value: unknown, path: Path, member: unknown): void {
  const parent = valueAt(value, path.slice(0, -1));
  const name = path.at(-1);
  if (isObject(parent) && name !== undefined && member !== undefined) parent[name] = structuredClone(member);
}

const isObject = (value: unknown): value is Record<PropertyKey, unknown> =>
  typeof value === "object" && value !== null;
