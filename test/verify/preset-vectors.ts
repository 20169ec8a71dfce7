import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Case } from "../vectors/verify/makers/kit.ts";

/** Requests that a preset must accept or reject. test/vectors/verify/make-presets.ts writes these files. */
export interface Vectors {
  readonly preset: string;
  readonly source: string;
  /** Responses to fetches, keyed by URL. */
  readonly fetched?: Readonly<Record<string, string>>;
  readonly cases: readonly Case[];
}

const FOLDER = new URL("../vectors/verify/presets/", import.meta.url);

export const readVectors = (): ReadonlyMap<string, Vectors> =>
  new Map(
    readdirSync(FOLDER).map((file) => [
      basename(file, ".json"),
      JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")),
    ]),
  );
