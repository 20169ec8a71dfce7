import { z } from "zod";
import { commonFields } from "../../event/channel.ts";
import { wakesField } from "../../event/wakes.ts";
import { wrongFields } from "../../lib/issue-message.ts";
import { suggestNearest } from "../../lib/nearest.ts";
import { parseParams } from "../../verify/preset-params.ts";
import { getPresets } from "../../verify/presets.ts";
import { type RegistrationConfig, registrationConfigSchema } from "../../verify/registration-config.ts";
import { inheritPresetVerification, requestFields, senderFields } from "../../verify/sender-config.ts";

export const webhookConfigSchema = z
  .strictObject({
    ...commonFields,
    ...senderFields,
    ...requestFields,
    registration: registrationConfigSchema.optional(),
    wakes: wakesField,
  })
  .describe("An external system sends its own format to the channel's address.")
  .overwrite(inheritPresetVerification)
  .overwrite((config) => ({ ...config, ...resolveRegistration(config, () => {}) }))
  .superRefine((config, context) => {
    resolveRegistration(config, (path, message) =>
      context.addIssue({ code: "custom", path: ["registration", ...path], message }),
    );
  });

/**
 * Fills in the target and the defaults of its parameters.
 *
 * @param reject called for each invalid setting
 */
function resolveRegistration(
  {
    preset: name,
    registration,
  }: { readonly preset?: string | undefined; readonly registration?: RegistrationConfig | undefined },
  reject: (path: readonly PropertyKey[], message: string) => void,
): { readonly registration?: RegistrationConfig } {
  if (registration === undefined) return {};
  const preset = name === undefined ? undefined : getPresets().get(name);
  const [first, ...others] = preset?.registrations ?? [];
  if (preset === undefined || first === undefined) {
    const reason =
      preset === undefined
        ? "requires a `preset`"
        : `is not available, because ${preset.title} has no API for it`;
    reject([], `${reason}; ${listRegistrable()}`);
    return {};
  }
  const { target = first.target, params } = registration;
  const found = [first, ...others].find((one) => one.target === target);
  if (found === undefined) {
    const targets = [first, ...others].map((one) => one.target);
    reject(["target"], `must be one of ${targets.join(", ")}${suggestNearest(target, targets)}`);
    return {};
  }
  const parsed = parseParams(found.params, params);
  if (!parsed.success)
    for (const { path, message } of wrongFields(parsed.error, params)) reject(["params", ...path], message);
  return { registration: { ...registration, target, params: (parsed.data ?? params) as typeof params } };
}

function listRegistrable(): string {
  const names = [...getPresets().values()]
    .filter(({ registrations }) => registrations.length > 0)
    .map(({ preset }) => preset);
  return `presets with registrations: ${names.join(", ")}`;
}
