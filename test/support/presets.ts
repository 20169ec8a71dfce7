import { type Presets, readPresets } from "../../src/verify/presets.ts";

let presets: Presets | undefined;

/** Returns all known presets. Cached per worker, because each preset is a file. */
export function sharedPresets(): Presets {
  presets ??= readPresets();
  return presets;
}
