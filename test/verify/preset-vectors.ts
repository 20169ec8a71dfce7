import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Case } from "../vectors/verify/makers/kit.ts";

/** Deliveries that a preset must accept or refuse; written by test/vectors/verify/make-presets.ts. */
export interface Vectors {
  readonly preset: string;
  readonly source: string;
  /** The answers of fetches, by address. */
  readonly fetched?: Readonly<Record<string, string>>;
  readonly cases: readonly Case[];
}

const FOLDER = new URL("../vectors/verify/presets/", import.meta.url);

/** Vectors by the name of their file. */
export const readVectors = (): ReadonlyMap<string, Vectors> =>
  new Map(
    readdirSync(FOLDER).map((file) => [
      basename(file, ".json"),
      JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")),
    ]),
  );
