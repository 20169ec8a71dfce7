import type { RegistrationRow } from "../data/registrations/registrations.ts";
import type { PresetRegistration } from "../verify/preset-registration.ts";
import type { Presets } from "../verify/presets.ts";

/** Returns how to register at the target. `undefined` if this version has no such preset or target. */
export const findRegistration = (
  presets: Presets,
  { preset, target }: Pick<RegistrationRow, "preset" | "target">,
): PresetRegistration | undefined => presets.get(preset)?.registrations.find((one) => one.target === target);
