/**
 * Prints a bill of materials (CycloneDX, JSON) of all production packages in the lock file.
 *
 * usage: npm run --silent sbom > inlet.cdx.json
 *
 * `npm sbom --omit=dev` also omits production packages that a development dependency needs. So this script lists all and filters them.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
}

interface Dependency {
  readonly ref: string;
  readonly dependsOn: readonly string[];
}

const readJson = (file: string) => JSON.parse(readFileSync(join(ROOT, file), "utf8"));
const { packages } = readJson("package-lock.json");
const running = new Set(
  Object.keys(packages)
    .filter((path) => path !== "" && !packages[path].dev)
    .map((path) => `${path.replace(/^.*node_modules\//, "")}@${packages[path].version}`),
);

const args = ["sbom", "--package-lock-only", "--sbom-format=cyclonedx", "--sbom-type=application"];
const bom = JSON.parse(execFileSync("npm", args, { cwd: ROOT, encoding: "utf8", maxBuffer: 2 ** 26 }));
const components = (bom.components as readonly Component[]).filter(({ name, version }) =>
  running.has(`${name}@${version}`),
);
const refs = new Set([bom.metadata.component["bom-ref"], ...components.map((one) => one["bom-ref"])]);
const dependencies = (bom.dependencies as readonly Dependency[])
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }));
// npm reports the folder's name instead of the package name.
const component = { ...bom.metadata.component, name: readJson("package.json").name };
const printed = { ...bom, metadata: { ...bom.metadata, component }, components, dependencies };
process.stdout.write(`${JSON.stringify(printed, null, 2)}\n`);
