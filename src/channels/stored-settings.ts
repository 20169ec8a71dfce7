import type { z } from "zod";
import { findingsOf, formatPath } from "../http/findings.ts";
import type { Finding } from "../lib/errors.ts";
import { wrongFields } from "../lib/issue-message.ts";
import { err, ok, type Result } from "../lib/result.ts";

/** Settings as they were stored, with the defaults of today. */
export interface StoredSettings<T> {
  readonly settings: T;
  /** What of them would be refused if it were written today; they go on as they were. */
  readonly outdated: readonly Finding[];
}

type Path = readonly PropertyKey[];

/**
 * Reads settings that a program of before has accepted. What is written is held to the schema; what is stored goes on: a value that
 * is refused since stays as it is, a setting that is known no longer is left out. The error: what keeps them from being read at all.
 */
export function readStoredSettings<T>(
  schema: z.ZodType<T>,
  stored: unknown,
): Result<StoredSettings<T>, readonly Finding[]> {
  const read = schema.safeParse(stored);
  if (read.success) return ok({ settings: read.data, outdated: [] });
  const outdated = findingsOf(read.error);
  const fields = wrongFields(read.error).map(({ path }) => path);
  const unknown = read.error.issues.flatMap((issue) =>
    issue.code === "unrecognized_keys" ? issue.keys.map((key) => formatPath([...issue.path, key])) : [],
  );
  // First the values themselves, then the settings that hold them.
  for (const paths of [fields.map(aboveLists), fields.map((path) => path.slice(0, 1))]) {
    const rest = structuredClone(stored);
    for (const path of paths) removeAt(rest, path);
    const readRest = schema.safeParse(rest);
    if (!readRest.success) continue;
    const settings = structuredClone(readRest.data);
    for (const path of paths)
      if (!unknown.includes(formatPath(path))) putBack(settings, path, valueAt(stored, path));
    return ok({ settings, outdated });
  }
  return err(outdated);
}

/** For settings that were read before. @throws Error where they cannot be */
export function getStoredSettings<T>(schema: z.ZodType<T>, stored: unknown): T {
  const read = readStoredSettings(schema, stored);
  if (read.ok) return read.value.settings;
  throw new Error(read.error.map(({ path, message }) => `${path}: ${message}`).join("; "));
}

/** Elements of a list have no place of their own: the list is taken as a whole. */
function aboveLists(path: Path): Path {
  const index = path.findIndex((step) => typeof step === "number");
  return index < 0 ? path : path.slice(0, index);
}

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), value);

function removeAt(value: unknown, path: Path): void {
  const parent = valueAt(value, path.slice(0, -1));
  const name = path.at(-1);
  if (isObject(parent) && name !== undefined) delete parent[name];
}

/** Where there is a place for it still. */
function putBack(value: unknown, path: Path, member: unknown): void {
  const parent = valueAt(value, path.slice(0, -1));
  const name = path.at(-1);
  if (isObject(parent) && name !== undefined && member !== undefined) parent[name] = structuredClone(member);
}

const isObject = (value: unknown): value is Record<PropertyKey, unknown> =>
  typeof value === "object" && value !== null;
