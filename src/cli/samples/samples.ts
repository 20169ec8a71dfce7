import { readFile } from "node:fs/promises";
import { suggestNearest } from "../../lib/nearest.ts";
import { err, ok, type Result } from "../../lib/result.ts";

/** Providers with one sample body per event type, in the file `<preset>.json` of this folder. */
export const SAMPLED_PRESETS = [
  "github",
  "gitlab",
  "hubspot",
  "jira",
  "linear",
  "paypal",
  "sendgrid",
  "shopify",
  "slack",
  "stripe",
] as const;

/**
 * Returns the body that a provider sends for an event type. Returns `undefined` for providers with one sample for all types. The error
 * lists the known types.
 */
export async function findSampleBody(
  preset: string,
  type: string,
): Promise<Result<string | undefined, string>> {
  if (!SAMPLED_PRESETS.some((name) => name === preset)) return ok(undefined);
  const samples = await readSamples(preset);
  const body = samples.get(type);
  if (body !== undefined) return ok(JSON.stringify(body));
  const known = [...samples.keys()];
  return err(
    `there is no sample for the event type ${type}${suggestNearest(type, known)}. There are samples for ${known.join(", ")}. Pass the body of another type with --data`,
  );
}

/** Returns the sample bodies of a provider by event type. */
export async function readSamples(preset: string): Promise<ReadonlyMap<string, unknown>> {
  const text = await readFile(new URL(`./${preset}.json`, import.meta.url), "utf8");
  return new Map(Object.entries(JSON.parse(text)));
}
