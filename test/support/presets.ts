import { type Presets, readPresets } from "../../src/verify/presets.ts";

let presets: Presets | undefined;

/** All that are known, read once in a worker: they are as many files as presets. */
export function sharedPresets(): Presets {
  presets ??= readPresets();
  return presets;
}
