import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { verificationSettings } from "./schemes.ts";

/** A provider as data: how its deliveries are verified. */
export const presetSchema = z.strictObject({
  preset: z.string().regex(/^[a-z0-9-]{1,64}$/),
  title: z.string().min(1).max(255),
  description: z.string().max(4_096).nullable(),
  documentationUrl: z.url(),
  verification: verificationSettings.verification,
});
export type Preset = z.output<typeof presetSchema>;

const FOLDER = fileURLToPath(new URL("./presets/", import.meta.url));

/** All providers, by name: each is a file of the folder `presets`. @throws Error that names a file that does not fit */
export function readPresets(folder: string = FOLDER): readonly Preset[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => {
      const parsed = presetSchema.safeParse(JSON.parse(readFileSync(`${folder}/${file}`, "utf8")));
      if (parsed.success) return parsed.data;
      throw new Error(`${file} is no preset: ${z.prettifyError(parsed.error)}`);
    });
}
