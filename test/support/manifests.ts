import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

const DIR = join(import.meta.dirname, "../../config/kubernetes");

/** A Kubernetes object. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: its shape depends on the kind, and the schemas check it
  readonly spec?: any;
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
}

/** Parses the objects of a YAML file. Throws if it is invalid. */
export const parseManifests = (text: string): readonly Manifest[] =>
  parseAllDocuments(text)
    .map((document) => {
      if (document.errors[0] !== undefined) throw document.errors[0];
      return document.toJS() as Manifest | null;
    })
    .filter((one) => one !== null);

/** Reads the files of `config/kubernetes`. */
export const readManifests = (): readonly Manifest[] =>
  readdirSync(DIR)
    .filter((file) => file.endsWith(".yaml"))
    .flatMap((file) => parseManifests(readFileSync(join(DIR, file), "utf8")));

/** The validators read exactly the fields that they know. Fields that were not read are unknown to Kubernetes. */
function trackReads(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== "object" || value === null) return value;
  const inner = Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      unread.add(`${path}.${name}`);
      return [name, trackReads(one, `${path}.${name}`, unread)];
    }),
  );
  return new Proxy(Array.isArray(value) ? Object.values(inner) : inner, {
    get(target, name) {
      unread.delete(`${path}.${String(name)}`);
      return Reflect.get(target, name);
    },
  });
}

/** Returns the violations of the schemas of Kubernetes and KEDA in an object. */
export async function validateManifest(manifest: Manifest): Promise<readonly string[]> {
  const { apiVersion, kind } = manifest;
  const from = apiVersion.startsWith("keda.sh/") ? "@kubernetes-models/keda" : "kubernetes-models";
  const { [kind]: Model } = await import(`${from}/${apiVersion}/${kind}`);
  const unread = new Set<string>();
  const fields = Object.entries(manifest).map(([name, value]) => [name, trackReads(value, name, unread)]);
  try {
    // The constructor copies its argument.
    Object.assign(new Model(), Object.fromEntries(fields)).validate();
  } catch (error) {
    return [String(error)];
  }
  return [...unread].map((path) => `${path} is unknown`);
}
