import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

/**
 * Returns a hash of the code generator's sources. The hash is stored with generated code, because other versions of the generator
 * may produce different code.
 */
export function generatorId(): string {
  const hash = createHash("sha256");
  const folder = new URL("./", import.meta.url);
  for (const file of readdirSync(folder).sort())
    hash.update(`${file}\0`).update(readFileSync(new URL(file, folder)));
  const packages = createRequire(import.meta.url);
  for (const name of ["ajv", "ajv-formats"]) {
    const { version }: { readonly version: string } = packages(`${name}/package.json`);
    hash.update(`${name}@${version}\0`);
  }
  return hash.digest("base64url");
}
