import { existsSync } from "node:fs";
import { join } from "node:path";

/** Returns the absolute paths of test files below `test/`. `names` has one path per line, without `.test.ts`. Throws if a file does not exist. */
export function filesOf(names: string): readonly string[] {
  const files = names
    .trim()
    .split(/\s+/)
    .map((name) => join(import.meta.dirname, "..", `${name}.test.ts`));
  const missing = files.filter((file) => !existsSync(file));
  if (missing.length > 0) throw new Error(`a list names test files that do not exist: ${missing.join(", ")}`);
  return files;
}
